"""Plots and pages of what was recovered."""
