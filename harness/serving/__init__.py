"""Model servers and the one client that talks to them."""
