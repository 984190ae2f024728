# examples/recipes.py, with the libraries that are installed here.
#
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib

import numpy
import pytest

spec = importlib.util.spec_from_file_location(
    "recipes", pathlib.Path(__file__).parents[2] / "examples/recipes.py"
)
recipes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipes)


def test_numpy(shards):
    folder, array = shards
    numpy.testing.assert_array_equal(numpy.concatenate(recipes.numpy_in_tiles(folder, 3)), array)


@pytest.mark.parametrize(
    "recipe, scheduler",
    [("dask_array", "threads"), ("dask_array", "processes"), ("dask_blocks", "processes")],
)
def test_dask(shards, recipe, scheduler):
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    folder, array = shards
    with dask.config.set(scheduler=scheduler, num_workers=2):
        found = getattr(recipes, recipe)(folder, 100)
        assert found.shape == array.shape and found.numblocks == (10, 1)
        total, part = dask.compute(found.sum(dtype="f8"), found[250:420, 2])
    assert total == array.sum(dtype="f8")
    numpy.testing.assert_array_equal(part, array[250:420, 2])


def test_recipes_are_short():
    import inspect

    for name, recipe in inspect.getmembers(recipes, inspect.isfunction):
        assert len(inspect.getsource(recipe).splitlines()) < 30, name


def test_xarray(tmp_path):
    pytest.importorskip("xarray")
    pytest.importorskip("dask.array")
    import tegula

    array = numpy.arange(40.0).reshape(10, 4)
    tegula.save(array, tmp_path / "x.h5", attrs={"unit": "m"})
    found = recipes.xarray_array(tmp_path / "x.h5", ("t", "x"), 3)
    assert (found.attrs, found.dims) == ({"unit": "m"}, ("t", "x"))
    numpy.testing.assert_array_equal(found.isel(t=4), array[4])


def test_jax(shards):
    jax = pytest.importorskip("jax")
    folder, array = shards
    found = recipes.jax_array(folder, jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0]))
    numpy.testing.assert_array_equal(numpy.asarray(found), array)


def test_torch(shards):
    torch = pytest.importorskip("torch")
    folder, array = shards
    tensor = recipes.torch_tensor(folder)
    assert tensor.dtype == torch.float32
    numpy.testing.assert_array_equal(tensor.numpy(), array)
