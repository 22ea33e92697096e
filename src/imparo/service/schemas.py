"""What requests and answers look like; the OpenAPI description is made of this."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from imparo.service.labels import Label, Labels
from imparo.service.rows import Rows

Number = Annotated[float, Field(allow_inf_nan=False)]
Recoding = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
#: Of a lesson, so that it can be sent again.
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Positive = Annotated[float, Field(gt=1e-12, lt=1e12)]
_Penalty = _Positive | Annotated[list[_Positive], Field(min_length=1, max_length=8)] | None
# With less nothing is left of what was learned, not even numbers.
_Forgetting = Annotated[float, Field(ge=1e-3, le=1)]
_Kind = Literal["exponential", "directional"]
# Of an object in a request; no kind has so many.
_MEMBERS = 40
_Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Strict(BaseModel):
    """A request: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, sent: Any) -> Any:
        # An error for each of a million takes seconds.
        if isinstance(sent, dict) and len(sent) > _MEMBERS:
            raise ValueError(f"it has {len(sent)} members, and at most {_MEMBERS} are known")
        return sent


# Learners to create.


class Waves(Strict):
    """Random Fourier features of a Gaussian kernel."""

    n_features: Annotated[int, Field(ge=1)] = 500
    sigma: _Positive
    random_state: _Seed = 0


class ClassifierParameters(Strict):
    """Parameters of an IncrementalClassifier."""

    fourier: Waves | None = None
    n_inputs: Annotated[int, Field(ge=1)] | None = None
    penalty: _Penalty = None
    recoding: Recoding | Literal["auto"] = "auto"
    holdout: Annotated[int, Field(ge=2, le=1000)] = 6
    holdout_size: Annotated[int, Field(ge=1, le=1600)] = 1000
    unknown_below: Annotated[float, Field(ge=0, le=1)] = 0.0
    forgetting: _Forgetting = 1.0
    forgetting_kind: _Kind = "exponential"
    intercept: bool = True
    drift: Literal["record", "forget"] | None = "record"
    random_state: _Seed = 0


class RegressorParameters(Strict):
    """Parameters of a RecursiveRegressor."""

    fourier: Waves | None = None
    n_inputs: Annotated[int, Field(ge=1)] | None = None
    n_outputs: Annotated[int, Field(ge=1)] | None = None
    penalty: _Penalty = None
    forgetting: _Forgetting = 1.0
    forgetting_kind: _Kind = "exponential"
    intercept: bool = True
    drift: Literal["record", "forget"] | None = "record"


class Arm(Strict):
    """A robot: Denavit-Hartenberg rows [a, α, d, θ], or the text of a URDF."""

    dh: Annotated[
        list[Annotated[list[Number], Field(min_length=4, max_length=4)]] | None,
        Field(min_length=1, max_length=12),
    ] = None
    urdf: Annotated[str, Field(max_length=2**20)] | None = None
    joints: Annotated[list[str], Field(min_length=1, max_length=64)] | None = None
    sensor: Annotated[int, Field(ge=1)] | Annotated[str, Field(max_length=200)] | None = None
    sign: Literal[1, -1] = 1
    gravity: Annotated[list[Number], Field(min_length=3, max_length=3)] = [0.0, 0.0, -9.81]


class DynamicsParameters(Strict):
    """Which parts learn, and their parameters."""

    model: Literal["P", "NP", "SP"] = "NP"
    robot: Arm | None = None
    n_joints: Annotated[int, Field(ge=1, le=64)] | None = None
    n_outputs: Annotated[int, Field(ge=1)] | None = None
    n_features: Annotated[int, Field(ge=1)] = 500
    sigma: _Positive | Literal["auto"] = "auto"
    penalty: _Positive = 0.1
    forgetting: _Forgetting = 1.0
    parametric_penalty: _Positive = 1e-6
    parametric_forgetting: _Forgetting = 1.0


class NewClassifier(Strict):
    """A learner of classes."""

    kind: Literal["classifier"]
    name: Name
    features: Literal["vectors", "pixels", "network"] = "vectors"
    parameters: ClassifierParameters = ClassifierParameters()


class NewRegressor(Strict):
    """A learner of numbers."""

    kind: Literal["regressor"]
    name: Name
    features: Literal["vectors"] = "vectors"
    parameters: RegressorParameters = RegressorParameters()


class NewDynamics(Strict):
    """A learner of a robot's inverse dynamics; rows are [q, dq, ddq]."""

    kind: Literal["dynamics"]
    name: Name
    features: Literal["vectors"] = "vectors"
    parameters: DynamicsParameters = DynamicsParameters()


NewLearner = Annotated[NewClassifier | NewRegressor | NewDynamics, Field(discriminator="kind")]


class Change(Strict):
    """What can be changed of a learner."""

    recoding: Recoding | Literal["auto"]


# Teaching and asking.


class Teach(Strict):
    """One example, or several in their order; under one key they are learned once."""

    inputs: Rows
    labels: Labels = None
    outputs: Rows | None = None
    key: Key | None = None


class Ask(Strict):
    """One row, or several."""

    inputs: Rows
    recoding: Recoding | None = None
    novelty: bool = False


class Forget(Strict):
    """A class to forget."""

    label: Label


class Rename(Strict):
    """A class, and its new name."""

    label: Label
    new: Label


class Merge(Strict):
    """The learner to learn from."""

    other: Name


# Answers.


class Taught(BaseModel):
    """What an example has changed: it is kept when this is read."""

    number: int
    n_seen: int
    answers: list[Label | None] | None = None


class Answers(BaseModel):
    """Labels with probabilities, or outputs with deviations."""

    answers: list[Label] | None = None
    confidence: list[float] | None = None
    classes: list[Label] | None = None
    probabilities: list[list[float]] | None = None
    novelty: list[float] | None = None
    outputs: list[list[float]] | None = None
    deviations: list[list[float | None]] | None = None


class ImageAnswer(BaseModel):
    """What is on an image."""

    answer: Label
    confidence: float
    classes: list[Label]
    probabilities: list[float]


class ClassState(BaseModel):
    """A class."""

    label: Label
    shown: int
    thumbnails: list[str]


class RecodingState(BaseModel):
    """α: as it is set, and as it is in use."""

    setting: float | Literal["auto"]
    in_use: float | None


class State(BaseModel):
    """A learner."""

    name: str
    kind: str
    features: str
    status: Literal["open", "damaged"]
    reason: str | None = None
    n_seen: int = 0
    number: int = 0
    n_inputs: int | None = None
    n_outputs: int | None = None
    classes: list[ClassState] = []
    recoding: RecodingState | None = None
    milliseconds: float | None = None
    accuracy: float | None = None
    error: float | None = None
    memory: int = 0
    disk: int = 0
    created: str


class States(BaseModel):
    """All learners."""

    learners: list[State]


class Confusion(BaseModel):
    """How often a row's label was answered with a column's, before it was learned."""

    labels: list[Any]
    counts: list[list[int]]


class History(BaseModel):
    """Curves over the examples seen."""

    accuracy: list[tuple[int, float]] = []
    error: list[tuple[int, float]] = []
    milliseconds: list[tuple[int, float]] = []
    memory: list[tuple[int, float]] = []
    confusion: Confusion


class FoundClass(BaseModel):
    """How often a class is found at each α: on examples held out, or left out in turn."""

    label: Label
    shown: int
    judged_by: int
    found: list[float | None]


class RecodingCurve(BaseModel):
    """What recoding does."""

    alphas: list[float]
    in_use: float | None
    setting: float | Literal["auto"]
    classes: list[FoundClass]
    accuracy: list[float | None]


class Feature(BaseModel):
    """A kind of features."""

    name: str
    available: bool
    reason: str | None
    about: str


class Features(BaseModel):
    """Kinds of features."""

    features: list[Feature]


class About(BaseModel):
    """The service."""

    version: str
    token_needed: bool
    limits: dict[str, int | float]


class Problem(BaseModel):
    """What was wrong, what was expected, what to do; rows that were learned all the same."""

    error: str
    learned: int | None = None
