"""
A whole path in one fit
=======================

One pass over the rows gives the validation error of *every* penalty and every number of
centers (:doc:`section 4.2 of the thesis </guides/nystrom>`). Here 30 × 30 models of the
strength of concrete are scored in less time than it takes to draw them.
"""

# %%
# The data ship with imparo: 1,030 mixtures, eight columns. Columns of different units are
# scaled first.

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from imparo import NystromRegressor
from imparo.data import load_concrete

concrete = load_concrete()
X, X_test, y, y_test = train_test_split(concrete.X, concrete.y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

model = NystromRegressor(
    "gaussian",
    sigma=3.0,
    n_centers=np.unique(np.geomspace(10, 600, 30).astype(int)),
    penalty=np.geomspace(1e-1, 1e-10, 30),
    validation=5,
    intercept=True,
    random_state=0,
).fit(X, y)
print(model.path_)

# %%
# ``path_.plot()`` draws the error over both levels. With hardly a penalty *more* centers are
# worse: their number regularizes, too. With the right one they do no harm, but from some size
# on no good either.

axes = model.path_.plot()

# %%
# What was chosen is fitted to all rows, without another pass:

error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
print(
    f"{model.n_centers_} centers, λ = {model.penalty_:.1e}: {error:.2f} MPa on unseen mixtures"
)
