"""Pictures and pages of what was recovered."""
