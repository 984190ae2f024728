/* Files of other programs, known by their first bytes: what they are, and what to do with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A new kind is one row in each of the two tables. Signatures stand at the places that the formats'
 * own specifications give. */
#include <string.h>

#include "format/format.h"

/* The first ones stand in the place of the data: a dtype does not make them raw. */
enum {
  LFS,
  PAGE,
  XML,
  NEVER_RAW = XML,
  ZIP,
  GZIP,
  BZIP2,
  XZ,
  ZSTD,
  LZ4,
  TAR,
  NETCDF,
  HDF4,
  MATLAB,
  FITS,
  PARQUET,
  ARROW,
  TIFF,
  PNG,
  KINDS
};

static const tegula__foreign kinds[KINDS] = {
    [LFS] = {"a pointer of Git LFS, not the file itself", "get the file: git lfs pull"},
    [PAGE] = {"a web page", "download the file again: this may be an error or a login page"},
    [XML] = {"an XML text", "download the file again: object stores answer errors so"},
    [ZIP] = {"a zip archive, as npz files are", "unpack it with unzip: an npz holds npy files"},
    [GZIP] = {"compressed by gzip", "unpack it first: gunzip FILE"},
    [BZIP2] = {"compressed by bzip2", "unpack it first: bunzip2 FILE"},
    [XZ] = {"compressed by xz", "unpack it first: unxz FILE"},
    [ZSTD] = {"compressed by zstd", "unpack it first: unzstd FILE"},
    [LZ4] = {"compressed by lz4", "unpack it first: unlz4 FILE"},
    [TAR] = {"a tar archive", "unpack it first: tar -xf FILE"},
    [NETCDF] = {"a netCDF classic file", "convert it to HDF5: nccopy -k nc4 FILE NEW"},
    [HDF4] = {"an HDF4 file", "convert it to HDF5: h4toh5 FILE NEW"},
    [MATLAB] = {"a MAT file of version 5", "save it with -v7.3 (HDF5), or read it with scipy.io"},
    [FITS] = {"a FITS file", "convert it with astropy.io.fits and numpy.save"},
    [PARQUET] = {"a Parquet file", "convert it with pyarrow.parquet and numpy.save"},
    [ARROW] = {"an Arrow file", "convert it with pyarrow and numpy.save"},
    [TIFF] = {"a TIFF file", "convert it with tifffile and numpy.save"},
    [PNG] = {"a PNG image", "convert it with imageio and numpy.save"},
};

#define SIGNATURE(text) text, sizeof text - 1

static const struct signature {
  int kind;
  size_t offset;
  const char *bytes;
  size_t size;
} signatures[] = {
    {LFS, 0, SIGNATURE("version https://git-lfs.github.com/spec/")},
    {PAGE, 0, SIGNATURE("<!DOCTYPE html")},
    {PAGE, 0, SIGNATURE("<!doctype html")},
    {PAGE, 0, SIGNATURE("<html")},
    {PAGE, 0, SIGNATURE("<HTML")},
    {XML, 0, SIGNATURE("<?xml version=")},
    {ZIP, 0, SIGNATURE("PK\3\4")},
    {GZIP, 0, SIGNATURE("\x1f\x8b\x08")},
    {BZIP2, 0, SIGNATURE("BZh")},
    {XZ, 0, SIGNATURE("\3757zXZ\0")},
    {ZSTD, 0, SIGNATURE("\x28\xb5\x2f\xfd")},
    {LZ4, 0, SIGNATURE("\x04\x22\x4d\x18")},
    {TAR, 257, SIGNATURE("ustar")},
    {NETCDF, 0, SIGNATURE("CDF\1")},
    {NETCDF, 0, SIGNATURE("CDF\2")},
    {NETCDF, 0, SIGNATURE("CDF\5")},
    {HDF4, 0, SIGNATURE("\x0e\x03\x13\x01")},
    {MATLAB, 0, SIGNATURE("MATLAB 5.0 MAT-file")},
    {FITS, 0, SIGNATURE("SIMPLE  =")},
    {PARQUET, 0, SIGNATURE("PAR1")},
    {ARROW, 0, SIGNATURE("ARROW1\0\0")},
    {TIFF, 0, SIGNATURE("II*\0")},
    {TIFF, 0, SIGNATURE("MM\0*")},
    {PNG, 0, SIGNATURE("\x89PNG\r\n\x1a\n")},
};

const tegula__foreign *tegula__format_foreign(const void *head, size_t size, bool may_be_raw) {
  for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
    const struct signature *s = &signatures[i];
    if (may_be_raw && s->kind > NEVER_RAW) continue;
    if (size >= s->offset + s->size &&
        memcmp((const char *)head + s->offset, s->bytes, s->size) == 0)
      return &kinds[s->kind];
  }
  return NULL;
}
