"""Processes that compute together: their identities, how they meet, and how they notice a loss."""
