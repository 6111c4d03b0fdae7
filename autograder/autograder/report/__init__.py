"""What a student reads: the judged notebook's outputs and the feedback page; and requests for a regrade."""
