"""
A stream with a new class
=========================

A learner of nine digits is shown a tenth, a few times (:doc:`chapter 7 </guides/lifelong>`).
Nothing is retrained. Least squares alone ignore what is rare; *recoding* finds it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from imparo import IncrementalClassifier

digits = load_digits()
rng = np.random.default_rng(0)
order = rng.permutation(len(digits.target))
X, y = digits.data[order] / 16, digits.target[order]
X_test, y_test, X, y = X[:500], y[:500], X[500:], y[500:]
new = 3
known, rare = np.flatnonzero(y != new), np.flatnonzero(y == new)

# %%
# First the nine, then the tenth, one image at a time. ``recoding=0`` is the naive classifier.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True)
for recoding, label in ((0.0, "naive, α = 0"), (0.7, "recoded, α = 0.7")):
    model = IncrementalClassifier(penalty=1.0, recoding=recoding).partial_fit(
        X[known], y[known]
    )
    found, others = [], []
    for i in rare[:40]:
        model.learn_one(X[i], new)  # the first of them adds a class
        right_answers = model.predict(X_test) == y_test
        found.append(right_answers[y_test == new].mean())
        others.append(right_answers[y_test != new].mean())
    shown = np.arange(1, len(found) + 1)
    left.plot(shown, found, label=label)
    right.plot(shown, others, label=label)
left.set(
    ylim=(-0.03, 1.03), xlabel="times the new digit was shown", title=f"Images of {new} found"
)
right.set(ylim=(-0.03, 1.03), xlabel="times the new digit was shown", title="Others right")
left.legend()

# %%
# The cost of an example does not depend on how many were seen, and a class never seen costs
# one column.

print(model.classes_, "after", len(known) + len(found), "images")
