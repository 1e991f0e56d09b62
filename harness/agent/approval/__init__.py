"""Approval: a rule says runs or asks, an answerer answers what is asked, a decision model may advise."""
