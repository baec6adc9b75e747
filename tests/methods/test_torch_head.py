"""Heads as modules of torch; that each gives the head's own scores is in tests/contract/test_every_door.py."""

import numpy as np
import pytest
import sklearn.base
import torch

from problems import HEADS, problem, quick


def fitted(name, data):
    head = HEADS[name](**quick(HEADS[name]))
    return head.fit(**data.evidence(head.info.sees), classes=range(6), constants={"logit_scale": 30.0})


@pytest.mark.parametrize("name", HEADS)
def test_heads_take_what_a_model_returns(name):
    """Tensors that need a gradient, of floats that numpy does not have, of labels."""
    data = problem().cast(np.float32)

    def tensors(given):
        if isinstance(given, tuple):
            return tuple(map(tensors, given))
        tensor = torch.from_numpy(given.copy())
        return tensor.bfloat16().requires_grad_() if tensor.is_floating_point() else tensor

    def rounded(given):
        return tuple(map(rounded, given)) if isinstance(given, tuple) else np.asarray(tensors(given).detach().float())

    head = HEADS[name](**quick(HEADS[name]))
    evidence = data.evidence(head.info.sees)
    same = sklearn.base.clone(head).fit(**{key: rounded(given) for key, given in evidence.items()})
    head.fit(**{key: tensors(given) for key, given in evidence.items()})
    queries = tensors(data.test.X)
    assert np.array_equal(head.predict_proba(queries), same.predict_proba(rounded(data.test.X)))
    assert head.score(queries, tensors(data.test.y)) == same.score(rounded(data.test.X), data.test.y)


@pytest.mark.parametrize("name", ["CLAP", "TipAdapter", "ProKeR", "CLIPAdapter", "RLA", "APE"])
def test_also_without_shots_of_a_class_and_among_some_of_them(name):
    data = problem(counts=[4, 4, 0, 4, 2, 4])
    head = fitted(name, data).among([5, 2, 0])
    module = head.to_torch()
    with torch.inference_mode():
        said = module(torch.from_numpy(3 * data.test.X)).numpy()
    np.testing.assert_allclose(said, head.scores(data.test.X), rtol=1e-4, atol=1e-4)
    assert [module.classes[row] for row in said.argmax(axis=1)] == head.predict(data.test.X).tolist()


def test_the_module_can_be_trained_further_and_kept():
    data = problem().cast(np.float32)
    module = fitted("LPP", data).to_torch()
    rows, labels = torch.from_numpy(data.X), torch.from_numpy(data.y)
    before = torch.nn.functional.cross_entropy(module(rows), labels)
    before.backward()
    torch.optim.SGD(module.parameters(), lr=1e-3).step()
    assert torch.nn.functional.cross_entropy(module(rows), labels) < before
    assert set(module.state_dict()) == {"weights_", "bias_"}
