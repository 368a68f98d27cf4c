"""Records Einstein summations by numpy in f64.

    pip install numpy
    python references/cases/einsum.py
"""

import numpy as np
from caselib import Cases

cases = Cases("einsum", 14)
rng = cases.rng


def case(name, equation, *dims, terms=8):
    inputs = [rng.standard_normal(d).astype("float32") for d in dims]
    y = np.einsum(equation, *[x.astype("float64") for x in inputs])
    cases.op("einsum", name, f'equation="{equation}"', inputs, [np.asarray(y)], f"summed({terms})")


case("transpose", "ij->ji", (3, 4))
case("sum", "ij->i", (3, 4))
case("total", "ij->", (3, 4), terms=12)
case("diagonal", "ii->i", (5, 5))
case("trace", "ii", (5, 5))
case("batch_diagonal", "...ii->...i", (2, 3, 5, 5))
case("triple_diagonal", "iii->i", (4, 4, 4))
case("two_diagonals", "iijj->ji", (3, 3, 2, 2))
case("inner", "i,i", (5,), (5,))
case("outer", "i,j", (3,), (5,))
case("matmul", "ij,jk", (3, 4), (4, 5))
case("implicit_order", "ba,ac", (3, 4), (4, 5))
case("batch_matmul", "bij,bjk->bik", (2, 3, 4), (2, 4, 5))
case("elementwise", "ij,ij->ij", (3, 4), (3, 4))
case("ellipsis", "...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2))
case("ellipsis_implicit", "...i,...i", (2, 3, 4), (3, 4))
case("ellipsis_last", "i...,j...->ij...", (2, 4), (3, 4))
case("bilinear", "ni,ijo,nj->no", (3, 4), (4, 5, 2), (3, 5), terms=40)
case("attention", "bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4))
case("summed_before", "ij,kl->i", (3, 4), (2, 5), terms=64)
case("four", "a,ab,bc,c->", (2,), (2, 3), (3, 4), (4,), terms=64)
case("spaces", " i j , j k -> k i ", (3, 4), (4, 5))
case("empty", "ij,jk->ik", (3, 0), (0, 2))
x, y = rng.integers(-9, 9, (3, 4)), rng.integers(-9, 9, (4, 2))
cases.op("einsum", "integers", 'equation="ij,jk->ki"', [x, y], [np.einsum("ij,jk->ki", x, y)])
x, y, z = (rng.standard_normal(d).astype("float16") for d in [(3, 4), (4, 5), (5,)])
exact = np.einsum("ij,jk,k->i", *[v.astype("float64") for v in (x, y, z)])
cases.op("einsum", "halves", 'equation="ij,jk,k->i"', [x, y, z], [exact], "summed(40)")
cases.write(__file__, {"numpy": np.__version__})
