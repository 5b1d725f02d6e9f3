"""What several processes cost: measured on one machine, and reckoned for many."""
