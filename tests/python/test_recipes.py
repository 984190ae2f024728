# examples/recipes.py, with the libraries that are installed here.
#
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib

import numpy
import pytest

spec = importlib.util.spec_from_file_location("recipes", pathlib.Path(__file__).parents[2] / "examples/recipes.py")
recipes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipes)


def test_numpy(shards):
    folder, array = shards
    numpy.testing.assert_array_equal(numpy.concatenate(recipes.numpy_in_tiles(folder, 3)), array)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(shards, scheduler):
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    folder, array = shards
    with dask.config.set(scheduler=scheduler, num_workers=2):
        assert float(recipes.dask_array(folder, 100).sum(dtype="f8").compute()) == array.sum(dtype="f8")


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
