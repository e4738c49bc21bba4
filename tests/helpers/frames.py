"""What looks like the tables of libraries that need not be installed."""

import numpy as np


class PolarsFrame:
    """The part of a data frame of polars by which one is read, without an index or an order of axes."""

    def __init__(self, columns, kind="String"):
        self._columns, self._kind = columns, kind
        self.columns, self.shape = list(columns), (len(next(iter(columns.values()))), len(columns))

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, name):
        values = self._columns[name]
        dtype = "Float64" if values.dtype.kind == "f" else self._kind
        return type("Series", (), {"dtype": dtype, "__array__": lambda *_, **__: values})()

    def to_numpy(self):
        return np.stack(list(self._columns.values()), axis=1)


class DataArray:
    """The part of a DataArray of xarray by which one is read; its first dimension may have an index."""

    def __init__(self, values, index=None):
        self.values, self.shape, self.ndim = values, values.shape, values.ndim
        self.dtype, self.dims = values.dtype, tuple(f"dim_{k}" for k in range(values.ndim))
        self.indexes = {} if index is None else {"dim_0": index}

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)
