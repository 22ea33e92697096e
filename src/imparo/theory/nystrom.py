"""How many centers Nyström KRLS needs (thesis, sections 4.2 and 4.3)."""

import math

from imparo.conditions import (
    Condition,
    Dimension,
    Prescription,
    at_level,
    at_most,
    check_number,
    check_rows,
    enough,
    no_more_than_rows,
    round_up,
    shown,
)


def saturated(s: float) -> float:
    """Return v = min(s, 1/2): Tikhonov regularization gains nothing from a larger s."""
    return min(float(s), 0.5)


def nystrom_rule(
    n: int,
    *,
    norm: float,
    kernel_bound: float = 1.0,
    sampling: str = "uniform",
    effective_dimension: Dimension | None = None,
    max_dimension: Dimension | None = None,
    s: float = 0.0,
    gamma: float = 1.0,
    delta: float = 0.05,
    accuracy: float = 1.0,
    t0: float | None = None,
    Q: float | None = None,
    R: float = 1.0,
    M: float = 1.0,
    noise: float = 1.0,
) -> Prescription:
    """Return the penalty and centers with which Nyström KRLS learns at the optimal rate.

    Theorem 1 of section 4.2.3. With v = min(s, 1/2) and λ = ‖C‖n^{−1/(2v+γ+1)}, the excess
    risk is at most q²n^{−(2v+1)/(2v+γ+1)} with probability 1 − δ,
    q = 6R(2‖C‖ + Mκ/√‖C‖ + √(Qσ²/‖C‖^γ))log(6/δ), if

    - n ≥ 1655κ² + 223κ²log(6κ²/δ) + (38p/‖C‖ · log(114κ²p/(‖C‖δ)))^p, p = 1 + 1/(2v+γ);
    - m ≥ max(67, 5𝒩_∞(λ))log(12κ²/(λδ)) uniform centers, or
    - m ≥ max(334, 78T²𝒩(λ))log(48n/δ) centers by leverage scores that are known up to a
      factor T from t₀ ≥ 19κ²/n · log(12n/δ) on, with λ ≥ t₀.

    The penalty is that of the *mean* loss. The constants are not invariant to the scale of
    the kernel: divide it by κ² first, so that ``kernel_bound`` is 1.

    Parameters
    ----------
    n : int
        Rows.
    norm : float
        ‖C‖, the largest eigenvalue of the covariance operator, about that of K_n/n.
    kernel_bound : float
        κ² = sup K(x, x).
    sampling : {"uniform", "leverage"}
        How centers are drawn.
    effective_dimension : float or function of λ, optional
        𝒩(λ); Qλ^{−γ} if left out.
    max_dimension : float or function of λ, optional
        𝒩_∞(λ); κ²/λ, which it never exceeds, if left out.
    s : float
        Source condition ‖C^{−s}f‖ < R; 0 always holds where the best f is in the space.
    gamma : float
        Capacity condition 𝒩(λ) ≤ Qλ^{−γ}, in (0, 1]; 1 always holds.
    delta : float
        Probability with which the bound may fail.
    accuracy : float
        T ≥ 1.
    t0 : float, optional
        Level from which on the leverage scores are that accurate; the smallest that the
        theorem allows if left out.
    Q : float, optional
        𝒩(λ)λ^γ if left out, or κ² where 𝒩 is not given and γ is 1.
    R : float
        At least 1.
    M, noise : float
        E|y − f(x)|^p ≤ ½p!M^{p−2}σ², with σ the ``noise``.

    Returns
    -------
    Prescription
        ``penalty``, ``n_centers``, ``rate_exponent``, ``risk_bound``, ``q``, ``n_needed``.

    Examples
    --------
    >>> from imparo.theory import nystrom_rule
    >>> rule = nystrom_rule(4 * 10**6, norm=0.5, max_dimension=20.0)
    >>> rule.penalty, rule.n_centers, rule.holds
    (0.00025, 1378, True)
    >>> print(nystrom_rule(1000, norm=0.5, max_dimension=20.0).violated[0])
    violated: enough rows for the theorem (n ≥ 1,923,637 is needed and n is 1,000)
    """
    check_rows(n)
    check_number("kernel_bound", kernel_bound, above=0)
    check_number("norm", norm, above=0, most=kernel_bound * (1 + 1e-9))
    check_number("gamma", gamma, above=0, most=1)
    check_number("delta", delta, above=0, below=1)
    check_number("s", s, least=0)
    check_number("R", R, least=1)
    check_number("accuracy", accuracy, least=1)
    check_number("M", M, least=0)
    check_number("noise", noise, least=0)
    if Q is not None:
        check_number("Q", Q, above=0)
    if sampling not in ("uniform", "leverage"):
        raise ValueError(f"sampling={sampling!r} must be 'uniform' or 'leverage'")

    v = saturated(s)
    penalty = norm * n ** (-1 / (2 * v + gamma + 1))
    capacity, Q, dimension = _capacity(
        penalty, effective_dimension, Q, float(gamma), kernel_bound, sampling
    )
    n_needed = rows_needed(norm, kernel_bound=kernel_bound, s=s, gamma=gamma, delta=delta)
    conditions = [enough("enough rows for the theorem", "n", n, n_needed), capacity]
    if sampling == "uniform":
        largest = limit = kernel_bound / penalty
        if max_dimension is not None:
            largest = at_level(max_dimension, penalty, "max_dimension")
            limit *= 1 + 1e-9
            conditions.append(at_most("κ² bounds the kernel", "𝒩_∞(λ)", largest, limit))
        m = uniform_centers(largest, penalty, kernel_bound, delta)
        place = "uniform centers"
    else:
        assert dimension is not None
        m = leverage_centers(dimension, n, accuracy, delta)
        least = smallest_level(n, kernel_bound=kernel_bound, delta=delta)
        t0 = least if t0 is None else t0
        check_number("t0", t0, above=0)
        conditions += [
            enough("scores are demanded from a level that n rows resolve", "t₀", t0, least),
            enough("the leverage scores are accurate at λ", "λ", penalty, t0),
        ]
        place = "centers by leverage scores"
    n_centers = max(round_up(m), 1)
    conditions += [no_more_than_rows(n_centers, n), *_assumptions(s, R, M, noise)]
    rate = (2 * v + 1) / (2 * v + gamma + 1)
    values = {"penalty": penalty, "n_centers": n_centers, "rate_exponent": rate}
    if Q is not None:
        kappa, variance = math.sqrt(kernel_bound), Q * noise**2 / norm**gamma
        q = 2 * norm + M * kappa / math.sqrt(norm) + math.sqrt(variance)
        q *= 6 * R * math.log(6 / delta)
        values |= {"risk_bound": q**2 * n**-rate, "q": q}
    values["n_needed"] = n_needed
    name = f"Nyström KRLS with {place} (theorem 1, section 4.2.3)"
    return Prescription(name, values, tuple(conditions))


def _capacity(
    penalty: float,
    dimension: Dimension | None,
    Q: float | None,
    gamma: float,
    kernel_bound: float,
    sampling: str,
) -> tuple[Condition, float | None, float | None]:
    """Return the capacity condition, Q and 𝒩(λ), where these are known or implied."""
    words = f"capacity: 𝒩(λ) ≤ Qλ^−{gamma:g} for all λ"
    if dimension is not None:
        value = at_level(dimension, penalty, "effective_dimension")
        if Q is None:
            known = Condition(words, None, "Q is taken from 𝒩 at this λ")
            return known, value * penalty**gamma, value
        bound = Q * penalty**-gamma
        detail = f"at this λ, 𝒩(λ) is {shown(value)} and Qλ^−γ is {shown(bound)}"
        # One level can refute the condition, not confirm it.
        return Condition(words, None if value <= bound else False, detail), Q, value
    if Q is None and gamma == 1:
        always = Condition(words, True, "always so with Q = κ²")
        return always, kernel_bound, kernel_bound / penalty
    if Q is None:
        if sampling == "leverage":
            raise ValueError(
                "leverage scores need 𝒩(λ): give effective_dimension, or Q for gamma below 1"
            )
        return Condition(words, None, "Q is not known, so neither is the bound"), None, None
    sure = True if gamma == 1 and kernel_bound <= Q else None
    return Condition(words, sure), Q, Q * penalty**-gamma


def _assumptions(s: float, R: float, M: float, noise: float) -> list[Condition]:
    return [
        Condition(f"source: ‖C^−s f‖ < {shown(R)} with s = {s:g}", None),
        Condition(f"noise: moments with M = {shown(M)}, σ = {shown(noise)}", None),
    ]


def uniform_centers(largest: float, level: float, kernel_bound: float, delta: float) -> float:
    """Return max(67, 5𝒩_∞(t))log(12κ²/(tδ)), the uniform centers needed at level t."""
    return max(67.0, 5 * largest) * math.log(12 * kernel_bound / (level * delta))


def leverage_centers(dimension: float, n: int, accuracy: float, delta: float) -> float:
    """Return max(334, 78T²𝒩(t))log(48n/δ), the centers by leverage scores needed there."""
    return max(334.0, 78 * accuracy**2 * dimension) * math.log(48 * n / delta)


def rows_needed(
    norm: float,
    *,
    kernel_bound: float = 1.0,
    s: float = 0.0,
    gamma: float = 1.0,
    delta: float = 0.05,
) -> int | float:
    """Return the n from which on theorem 1 of section 4.2.3 speaks; see :func:`nystrom_rule`.

    Parameters
    ----------
    norm, kernel_bound, s, gamma, delta
        As for :func:`nystrom_rule`.

    Returns
    -------
    int
        Infinity where it is beyond the numbers of the machine.

    Examples
    --------
    >>> from imparo.theory import rows_needed
    >>> rows_needed(1.0, delta=0.1)
    347874
    """
    p = 1 + 1 / (2 * saturated(s) + gamma)
    base = 38 * p / norm * math.log(114 * kernel_bound * p / (norm * delta))
    if p * math.log(base) > 700:
        return math.inf
    constant = 1655 * kernel_bound + 223 * kernel_bound * math.log(6 * kernel_bound / delta)
    return math.ceil(constant + base**p)


def smallest_level(n: int, *, kernel_bound: float = 1.0, delta: float = 0.05) -> float:
    """Return 19κ²/n · log(12n/δ), the smallest t₀ that theorem 1 of section 4.2.3 allows.

    Examples
    --------
    >>> from imparo.theory import smallest_level
    >>> round(smallest_level(10**6), 7)
    0.0003666
    """
    return 19 * kernel_bound / n * math.log(12 * n / delta)


def centers_as_regularizer(n: int, *, s: float = 0.0, gamma: float = 1.0) -> Prescription:
    """Return centers and penalty where the number of centers is what regularizes.

    With λ = log(m)/m for plain Nyström, m = 3n^{1/(2v+γ+1)}log n attains the bound of
    :func:`nystrom_rule`; m alone is then to be tuned (section 4.2.3, last paragraph).

    Parameters
    ----------
    n : int
    s, gamma
        As for :func:`nystrom_rule`.

    Returns
    -------
    Prescription
        ``n_centers``, ``penalty``, ``rate_exponent``.

    Examples
    --------
    >>> from imparo.theory import centers_as_regularizer
    >>> rule = centers_as_regularizer(10**6)
    >>> rule.n_centers, round(rule.penalty, 6), rule.rate_exponent
    (41447, 0.000257, 0.5)
    """
    check_rows(n, 2)
    check_number("s", s, least=0)
    check_number("gamma", gamma, above=0, most=1)
    total = 2 * saturated(s) + gamma + 1
    m = round_up(3 * n ** (1 / total) * math.log(n))
    values = {
        "n_centers": m,
        "penalty": math.log(m) / m,
        "rate_exponent": (2 * saturated(s) + 1) / total,
    }
    conditions = (
        no_more_than_rows(m, n),
        Condition(f"source condition with s = {s:g}", None),
        Condition(f"capacity condition with γ = {gamma:g}", True if gamma == 1 else None),
    )
    name = "the number of centers as the regularizer (section 4.2.3, proof sketch)"
    return Prescription(name, values, conditions)


def fixed_design_rule(
    n: int,
    penalty: float,
    max_dimension: Dimension,
    *,
    norm: float | None = None,
    kernel_bound: float = 1.0,
    delta: float = 0.5,
) -> Prescription:
    """Return the uniform centers with which Nyström KRLS is as good as KRLS on given rows.

    Theorem 5 of section 4.3.2 (Bach): with m ≥ (32d̃(λ)/δ + 2)log(‖K_n‖n/(δλ)) the
    expected excess risk on the rows themselves is at most 1 + 4δ times that of KRLS.

    Parameters
    ----------
    n : int
    penalty : float
        λ, of the mean loss.
    max_dimension : float or function of λ
        d̃(λ) = n·maxᵢ(K_n(K_n + nλI)⁻¹)ᵢᵢ.
    norm : float, optional
        ‖K_n‖, the largest eigenvalue of the kernel matrix; nκ², which it never exceeds, if
        left out.
    kernel_bound : float
        κ² = max K(x, x).
    delta : float
        In (0, 1).

    Returns
    -------
    Prescription
        ``n_centers``, ``penalty``, ``factor``.

    Examples
    --------
    >>> from imparo.theory import fixed_design_rule
    >>> rule = fixed_design_rule(10**5, 1e-3, 30.0)
    >>> rule.n_centers, rule.factor
    (58865, 3.0)
    """
    check_rows(n)
    check_number("penalty", penalty, above=0)
    check_number("kernel_bound", kernel_bound, above=0)
    check_number("delta", delta, above=0, below=1)
    norm = n * kernel_bound if norm is None else norm
    check_number("norm", norm, above=0)
    dimension = at_level(max_dimension, penalty, "max_dimension")
    logarithm = math.log(norm * n / (delta * penalty))
    m = max(round_up((32 * dimension / delta + 2) * logarithm), 1)
    limit = min(kernel_bound / penalty, n) * (1 + 1e-9)
    conditions = (
        no_more_than_rows(m, n),
        at_most("the dimension is possible: d̃(λ) ≤ min(κ²/λ, n)", "d̃(λ)", dimension, limit),
    )
    values = {"n_centers": m, "penalty": float(penalty), "factor": 1 + 4 * float(delta)}
    name = "Nyström KRLS on given rows (theorem 5, section 4.3.2)"
    return Prescription(name, values, conditions)
