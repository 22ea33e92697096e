"""Kernel least squares on given rows: regularized, stopped early, subsampled (section 4.3).

The design is fixed: y = μ + noise of variance σ² at the rows themselves, and the excess risk
of f is ‖f − Pμ‖²/n with P the projection on the range of K_n.
"""

import math
from typing import Any

import numpy as np

from imparo.conditions import (
    Condition,
    Dimension,
    Prescription,
    at_level,
    at_most,
    check_number,
    check_rows,
    enough,
    round_up,
)
from imparo.engine import Array, default_engine, resolution
from imparo.filters import Landweber, Tikhonov
from imparo.theory.nystrom import fixed_design_rule


def expected_risk(
    K: Any,
    mu: Any,
    noise_variance: float,
    penalty: float | None = None,
    *,
    iterations: int | None = None,
    step_size: float | None = None,
    approximation: Any = None,
) -> float:
    """Return the expected excess risk on given rows, in closed form.

    A filter leaves a share ρ of each eigendirection unfitted: the risk is
    (Σρᵢ²⟨uᵢ, μ⟩² + σ²Σ(1 − ρᵢ)²)/n over the range of K_n. KRLS has ρ = nλ/(σᵢ + nλ), t
    steps of gradient descent have ρ = (1 − γσᵢ/n)^t.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix.
    mu : array of shape (n,)
        Expected outputs.
    noise_variance : float
        σ².
    penalty : float, optional
        λ of KRLS, for the mean loss; 0 is ordinary least squares.
    iterations : int, optional
        t of early stopping, in place of a penalty.
    step_size : float, optional
        γ, below 2n/‖K‖; 1/max Kᵢᵢ if left out.
    approximation : array of shape (n, n), optional
        The Nyström matrix K_nm K_mm⁺ K_mn: the risk is then that of Nyström KRLS or NYTRO.

    Returns
    -------
    float

    Notes
    -----
    Cost of an eigendecomposition, about 9n³. Eigenvalues below the resolution of the
    library, ε^{3/4} of the largest, count as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.theory import expected_risk
    >>> K = np.ones((4, 4))  # rank 1: constant functions
    >>> round(expected_risk(K, np.ones(4), noise_variance=1.0, penalty=0.0), 9)
    0.25
    >>> round(expected_risk(K, np.ones(4), noise_variance=1.0, penalty=0.25), 9)
    0.2
    """
    K, mu = np.asarray(K, np.float64), np.asarray(mu, np.float64)
    n = len(mu)
    if mu.ndim != 1 or K.shape != (n, n) or n == 0:
        raise ValueError(
            f"K has shape {K.shape} and mu {mu.shape}; give a square kernel matrix and one "
            "expected output for each of its rows"
        )
    if (penalty is None) == (iterations is None):
        raise ValueError("give either a penalty or a number of iterations, not both")
    check_number("noise_variance", noise_variance, least=0)
    sigma, U = _range(K)
    signal = default_engine().product(U.T, mu[:, None])[:, 0]
    unfitted = 0.0
    if approximation is not None:
        whole = float(signal @ signal)
        sigma, U = _range(np.asarray(approximation, np.float64))
        signal = default_engine().product(U.T, mu[:, None])[:, 0]
        unfitted = max(whole - float(signal @ signal), 0.0)
    if penalty is not None:
        check_number("penalty", penalty, least=0)
        left = Tikhonov().residual(sigma, n * penalty)[:, 0]
    else:
        check_number("iterations", iterations, least=1)
        largest = float(np.diagonal(K).max())
        step = (1 / largest if largest > 0 else 1.0) if step_size is None else step_size
        check_number("step_size", step, above=0)
        left = Landweber(step / n).residual(sigma, iterations)[:, 0]
    bias = float(np.square(left * signal).sum()) + unfitted
    return (bias + noise_variance * float(np.square(1 - left).sum())) / n


def _range(K: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of K that are not 0, and their eigenvectors."""
    sigma, U = default_engine().eigh(K)
    kept = sigma > resolution(np.float64) * max(float(sigma[-1]), 0.0)
    return sigma[kept], np.asfortranarray(U[:, kept])


def kols_risk(n: int, rank: int, noise_variance: float) -> float:
    """Return σ²d*/n, the expected excess risk of ordinary kernel least squares.

    Theorem 2 of section 4.3.2; d* is the rank of the kernel matrix.

    Examples
    --------
    >>> from imparo.theory import kols_risk
    >>> kols_risk(100, 50, 2.0)
    1.0
    """
    check_rows(n)
    check_number("rank", rank, least=0, most=n)
    check_number("noise_variance", noise_variance, least=0)
    return float(noise_variance * rank / n)


def krls_rule(
    n: int,
    snr: float,
    *,
    effective_dimension: Dimension | None = None,
    noise_variance: float | None = None,
) -> Prescription:
    """Return the penalty at which KRLS is no worse than least squares without any.

    Theorem 3 of section 4.3.2: at λ* = 1/(n·SNR), SNR = ‖f_opt‖²/σ², the expected excess
    risk is at most σ²d_eff(λ*)/n, hence at most σ²d*/n.

    Parameters
    ----------
    n : int
    snr : float
        Signal-to-noise ratio, with the norm of the kernel's space.
    effective_dimension : float or function of λ, optional
        d_eff(λ*) = Tr K_n(K_n + nλ*I)⁻¹.
    noise_variance : float, optional
        σ²; with both, the bound is computed.

    Returns
    -------
    Prescription
        ``penalty``, and ``risk_bound`` where it is known.

    Notes
    -----
    The thesis prints λ* = 1/SNR, where n is missing: with K_n = 11ᵀ, f = c and σ = c that
    is λ = 1, which has risk c²/4 and more, not c²/(2n). What is proved is this. With
    wᵢ = ⟨uᵢ, μ⟩²/σᵢ, so that Σwᵢ = ‖f_opt‖², the squared bias is
    λΣwᵢ·nλσᵢ/(σᵢ + nλ)² ≤ λ‖f_opt‖²Σnλσᵢ/(σᵢ + nλ)², and adding σ²/n·Σnλσᵢ/(σᵢ + nλ)²
    to the variance σ²/n·Σσᵢ²/(σᵢ + nλ)² gives σ²d_eff(λ)/n. So the bound holds for every
    λ ≤ σ²/(n‖f_opt‖²), the largest of which is λ*.

    Examples
    --------
    >>> from imparo.theory import krls_rule
    >>> rule = krls_rule(1000, 5.0, effective_dimension=20.0, noise_variance=1.0)
    >>> rule.penalty, rule.risk_bound
    (0.0002, 0.02)
    """
    check_rows(n)
    check_number("snr", snr, above=0)
    penalty = 1 / (n * float(snr))
    values = {"penalty": penalty}
    if effective_dimension is not None and noise_variance is not None:
        check_number("noise_variance", noise_variance, least=0)
        dimension = at_level(effective_dimension, penalty, "effective_dimension")
        values["risk_bound"] = noise_variance * dimension / n
    conditions = (Condition("the noise is independent, of mean 0 and equal variance", None),)
    name = "KRLS on given rows (theorem 3, section 4.3.2, λ* = 1/(n·SNR))"
    return Prescription(name, values, conditions)


def early_stopping_factor(iterations: int) -> float:
    """Return c_t = 4(1 + 1/(t − 1))², at most 16, infinite below t = 2.

    The expected excess risk after t steps is at most c_t times that of KRLS at λ = 1/(γt)
    (theorem 4 of section 4.3.2; NYTRO against Nyström KRLS, theorem 6 of section 4.3.3).

    Notes
    -----
    The constant is generous: with u = γσ/n ≤ 1 the bias factors compare as
    (1 − u)^t ≤ 1/(1 + ut) and the variance factors as
    1 − (1 − u)^t ≤ min(1, ut) ≤ 2ut/(1 + ut), so that 4 will do for every t from 1 on.

    Examples
    --------
    >>> from imparo.theory import early_stopping_factor
    >>> early_stopping_factor(2), early_stopping_factor(101)
    (16.0, 4.0804)
    """
    check_number("iterations", iterations, least=1)
    return 4 * (1 + 1 / (iterations - 1)) ** 2 if iterations >= 2 else math.inf


def early_stopping_rule(
    n: int,
    *,
    penalty: float | None = None,
    iterations: int | None = None,
    step_size: float | None = None,
    kernel_bound: float = 1.0,
    norm: float | None = None,
) -> Prescription:
    """Return the number of gradient steps that does what a penalty does.

    Theorem 4 of section 4.3.2: t = 1/(γλ) steps α ← α − (γ/n)(K_nα − y) have at most c_t
    times the expected excess risk of KRLS at λ; with λ* of :func:`krls_rule`,
    t* = n·SNR/γ.

    Parameters
    ----------
    n : int
    penalty : float, optional
        λ, for which t is wanted; t is rounded up, and 2 at least.
    iterations : int, optional
        t, in place of a penalty.
    step_size : float, optional
        γ; 1/κ² if left out.
    kernel_bound : float
        κ² = max K(x, x).
    norm : float, optional
        ‖K_n‖, for a sharper condition on the step.

    Returns
    -------
    Prescription
        ``iterations``, ``step_size``, ``penalty`` (1/(γt), that of the KRLS compared with)
        and ``factor`` (c_t).

    Notes
    -----
    The thesis prints γ < 1/‖K_n‖. Its update divides by n, and what the proof uses is
    γ‖K_n‖/n ≤ 1; the printed condition would have n times as many steps taken. The
    condition checked here is γ ≤ n/‖K_n‖, which 1/κ² satisfies.

    Examples
    --------
    >>> from imparo.theory import early_stopping_rule
    >>> rule = early_stopping_rule(1000, penalty=1e-2)
    >>> rule.iterations, round(rule.factor, 3)
    (100, 4.081)
    >>> print(early_stopping_rule(1000, iterations=1).violated[0])
    violated: two steps are taken at least (t ≥ 2 is needed and t is 1)
    """
    check_rows(n)
    check_number("kernel_bound", kernel_bound, above=0)
    step = 1 / kernel_bound if step_size is None else step_size
    check_number("step_size", step, above=0)
    t = _steps(penalty, iterations, step)
    if norm is not None:
        check_number("norm", norm, above=0)
        limit, text = n / norm, "the step is short enough, γ ≤ n/‖K_n‖"
    else:
        limit, text = 1 / kernel_bound, "the step is short enough, γ ≤ 1/κ²"
    conditions = (
        enough("two steps are taken at least", "t", t, 2),
        at_most(text, "γ", step, limit * (1 + 1e-12)),
    )
    values = {
        "iterations": t,
        "step_size": float(step),
        "penalty": 1 / (step * t),
        "factor": early_stopping_factor(t),
    }
    return Prescription("early stopping (theorem 4, section 4.3.2)", values, conditions)


def _steps(penalty: float | None, iterations: int | None, step: float) -> int:
    if (penalty is None) == (iterations is None):
        raise ValueError("give either a penalty or a number of iterations, not both")
    if penalty is not None:
        check_number("penalty", penalty, above=0)
        return max(round_up(1 / (step * penalty)), 2)
    assert iterations is not None
    check_number("iterations", iterations, least=1)
    return int(iterations)


def nytro_rule(
    n: int,
    max_dimension: Dimension,
    *,
    penalty: float | None = None,
    iterations: int | None = None,
    step_size: float | None = None,
    kernel_bound: float = 1.0,
    norm: float | None = None,
    delta: float = 0.5,
) -> Prescription:
    """Return the centers and steps with which NYTRO is as good as KRLS on given rows.

    Corollary 1 of section 4.3.3: with t steps and
    m ≥ (32d̃(1/(γt))/δ + 2)log(n‖K_n‖γt/δ) uniform centers, the expected excess risk is at
    most c_t(1 + 4δ) ≤ 80 times that of KRLS at λ = 1/(γt).

    Parameters
    ----------
    n : int
    max_dimension : float or function of λ
        d̃ at 1/(γt).
    penalty, iterations, step_size, kernel_bound
        As for :func:`early_stopping_rule`.
    norm : float, optional
        ‖K_n‖; nκ², which it never exceeds, if left out.
    delta : float
        In (0, 1).

    Returns
    -------
    Prescription
        ``n_centers``, ``iterations``, ``step_size``, ``penalty``, ``factor``.

    Notes
    -----
    The thesis prints γ < ‖K_nm R‖² in its theorem 6; what the proof uses is
    γ‖K_nm R‖²/n ≤ 1, and ‖K_nm R‖² ≤ ‖K_n‖ for every choice of centers.

    Examples
    --------
    >>> from imparo.theory import nytro_rule
    >>> rule = nytro_rule(10**5, 30.0, penalty=1e-3)
    >>> rule.n_centers, rule.iterations, round(rule.factor, 2), rule.holds
    (58865, 1000, 12.02, True)
    """
    stopped = early_stopping_rule(
        n, penalty=penalty, iterations=iterations, step_size=step_size,
        kernel_bound=kernel_bound, norm=norm,
    )  # fmt: skip
    centers = fixed_design_rule(
        n, stopped.penalty, max_dimension, norm=norm, kernel_bound=kernel_bound, delta=delta
    )
    values = {"n_centers": centers.n_centers, **stopped.values}
    values["factor"] = stopped.factor * centers.factor
    conditions = stopped.conditions + centers.conditions
    return Prescription("NYTRO (corollary 1, section 4.3.3)", values, conditions)
