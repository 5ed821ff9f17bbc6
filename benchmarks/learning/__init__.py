"""Does outcome feedback help? True memories, rivals that say it wrong, noisy verdicts, held-out questions."""
