"""What a program's peak would be if it were changed, and which changes pay."""
