"""Installed as hydra_plugins.calledshot: Hydra takes plugins from that namespace only."""
