/* Attributes of datasets that are made.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and text of fixed length have the types of datasets; text of any length is UTF-8, as h5py
 * stores it. */
#include <string.h>

#include "write/hdf5_write.h"

#define VARIABLE ((size_t)-1) /* H5T_VARIABLE */
enum { UTF8 = 1 /* H5T_CSET_UTF8 */ };
/* of one attribute: libhdf5 keeps it in the header of the dataset, and a message there has less
 * than 64 KiB */
enum { MOST_BYTES = 64000 };

/* The type that it is stored as, and the bytes in memory (in that type). -1: none, with the reason
 * in `why`, or libhdf5 failed. */
static hid_t type_of(hdf5_library *library, const tegula_attribute *attribute, char *why,
                     size_t size) {
  const hdf5_functions *call = &library->call;
  tegula_dtype dtype;
  why[0] = 0;
  if (strcmp(attribute->type, "str") == 0) {
    hid_t base = hdf5_predefined(library, "H5T_C_S1_g"),
          type = base >= 0 ? call->H5Tcopy(base) : -1;
    bool good =
        type >= 0 && call->H5Tset_size(type, VARIABLE) >= 0 && call->H5Tset_cset(type, UTF8) >= 0;
    if (type >= 0 && !good) call->H5Tclose(type);
    return good ? type : -1;
  }
  if (library->host->dtype_parse(attribute->type, &dtype, NULL) != TEGULA_OK) {
    strncpy(why, "its type has no form here", size);
    return -1;
  }
  if (dtype.order != '|') dtype.order = HDF5_NATIVE_ORDER;
  return hdf5_type_make(library, dtype, why, size);
}

static hid_t space_of(hdf5_library *library, const tegula_attribute *attribute) {
  hsize_t shape[HDF5_MAX_RANK];
  if (!attribute->shape && attribute->count == 0 && attribute->ndim == 0)
    return library->call.H5Screate(HDF5_SPACE_NULL);
  if (attribute->ndim == 0) return library->call.H5Screate(HDF5_SPACE_SCALAR);
  for (int k = 0; k < attribute->ndim && k < HDF5_MAX_RANK; k++)
    shape[k] = (hsize_t)attribute->shape[k];
  return attribute->ndim <= HDF5_MAX_RANK
             ? library->call.H5Screate_simple(attribute->ndim, shape, NULL)
             : -1;
}

/* Text of fixed length comes as texts, and goes as one block of padded bytes. */
static char *padded(hdf5_library *library, const tegula_attribute *attribute, size_t item) {
  char *block = library->host->allocate((size_t)attribute->count * item + 1);
  for (int64_t i = 0; block && i < attribute->count; i++)
    strncpy(block + (size_t)i * item, attribute->texts[i], item);
  return block;
}

static bool write_values(hdf5_library *library, hid_t id, hid_t type,
                         const tegula_attribute *attribute) {
  const hdf5_functions *call = &library->call;
  if (attribute->count == 0) return true;
  if (strcmp(attribute->type, "str") == 0) return call->H5Awrite(id, type, attribute->texts) >= 0;
  if (!attribute->texts) return call->H5Awrite(id, type, attribute->values) >= 0;
  char *block = padded(library, attribute, call->H5Tget_size(type));
  bool good = block && call->H5Awrite(id, type, block) >= 0;
  if (block) library->host->release(block);
  return good;
}

static tegula_status save_attribute(hdf5_library *library, hid_t dataset,
                                    const tegula_attribute *attribute, const char *path,
                                    tegula_error *err) {
  const hdf5_functions *call = &library->call;
  char why[128] = "";
  bool lacking = attribute->count > 0 && !attribute->values && !attribute->texts;
  hid_t type = lacking ? -1 : type_of(library, attribute, why, sizeof why - 1);
  if (lacking || (type < 0 && why[0]))
    return library->host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                               "cannot save the attribute \"%.200s\" in \"%s\": %s",
                               attribute->name, path, lacking ? "it has no values" : why);
  hid_t space = space_of(library, attribute), id = -1;
  if (type >= 0 && space >= 0)
    id = call->H5Acreate2(dataset, attribute->name, type, space, HDF5_DEFAULT, HDF5_DEFAULT);
  bool good = id >= 0 && write_values(library, id, type, attribute);
  bool large = type >= 0 && (uint64_t)attribute->count > MOST_BYTES / call->H5Tget_size(type);
  tegula_status status =
      good ? TEGULA_OK
           : hdf5_failed(library, err, large ? TEGULA_LIMIT_EXCEEDED : TEGULA_IO, path,
                         "save the attribute \"%.200s\" in \"%s\"", attribute->name, path);
  if (id >= 0) call->H5Aclose(id);
  if (space >= 0) call->H5Sclose(space);
  if (type >= 0) call->H5Tclose(type);
  return status;
}

tegula_status hdf5_save_attributes(hdf5_library *library, hid_t dataset,
                                   const tegula_plugin_layout *layout, const char *path,
                                   tegula_error *err) {
  for (int64_t i = 0; i < layout->attribute_count; i++)
    FORWARD(save_attribute(library, dataset, &layout->attributes[i], path, err));
  return TEGULA_OK;
}
