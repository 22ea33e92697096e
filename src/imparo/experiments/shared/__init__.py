"""What experiments share: data, trials, results on disk, verdicts, the book."""
