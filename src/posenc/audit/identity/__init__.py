"""What something is: fitted against our own encodings, which are exact."""
