"""Processes that compute together: who they are, how they meet, and how they notice a loss."""
