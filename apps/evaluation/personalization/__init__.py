"""The personalisation benchmark: which method learns a taste in how few sessions, and what of it stays."""
