#include "model/tensors.h"

#include <cjson/cJSON.h>

void pace__add_tensors(const pace__safetensors *file, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "tensors");

    for (size_t i = 0; i < pace__safetensors_count(file); i++) {
        const pace__tensor_info *tensor = pace__safetensors_at(file, i);
        cJSON *each = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(each, "shape");

        cJSON_AddItemToArray(list, each);
        cJSON_AddStringToObject(each, "name", tensor->name);
        cJSON_AddStringToObject(each, "type", pace__dtype_name(tensor->dtype));
        for (unsigned d = 0; d < tensor->rank; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape[d]));
    }
}
