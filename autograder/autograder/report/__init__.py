"""What a person reads: the autograded notebook's outputs and the feedback page."""
