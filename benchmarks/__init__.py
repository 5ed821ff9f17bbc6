"""Measurements of Runtime Memory: quality, the relevance gate, learning, and speed."""
