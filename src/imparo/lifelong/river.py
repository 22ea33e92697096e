"""Learners of imparo for pipelines and metrics of river."""

from typing import Any

from sklearn.base import is_classifier

from imparo.lifelong.base import Learner


def as_river(learner: Any) -> Any:
    """Return a learner as river's pipelines, metrics and checks take it.

    Needs ``pip install imparo[river]``. The learner itself is copied, and not changed. A name
    that appears late adds a column, exactly as if it had been 0 before, where the features
    are the rows themselves.

    Parameters
    ----------
    learner : IncrementalClassifier or RecursiveRegressor
        Not fitted.

    Returns
    -------
    river.base.Classifier or river.base.Regressor

    Examples
    --------
    >>> from river import metrics, preprocessing, stream
    >>> from sklearn.datasets import load_iris
    >>> from imparo import IncrementalClassifier
    >>> from imparo.lifelong import as_river
    >>> model = preprocessing.StandardScaler() | as_river(IncrementalClassifier())
    >>> accuracy = metrics.Accuracy()
    >>> for x, y in stream.iter_sklearn_dataset(load_iris(), shuffle=True, seed=0):
    ...     accuracy.update(y, model.predict_one(x))
    ...     model.learn_one(x, y)
    >>> accuracy.get() > 0.75
    True
    """
    if not isinstance(learner, Learner):
        raise TypeError(
            f"{learner!r:.60} is not a lifelong learner; give an IncrementalClassifier or a "
            "RecursiveRegressor"
        )
    try:
        from imparo.lifelong import river_face
    except ImportError as error:
        raise ImportError(
            "as_river needs the package river: pip install imparo[river]"
        ) from error
    face = river_face.RiverClassifier if is_classifier(learner) else river_face.RiverRegressor
    return face(learner)
