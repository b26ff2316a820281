/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

#include "base/compiler.h"
#include "weft/error.h"

#endif
