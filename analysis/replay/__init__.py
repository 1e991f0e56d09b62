"""The replay lab: recorded runs through any context policy, with exact tokens; and predicted reuse beside the server's.

A replay keeps the model's choices fixed: every policy sees the replies and results that were recorded, in their order. What
a model would have done under another policy, it can't say; that is what live runs are for.
"""
