"""The CUDA libraries of nearfield, which loads them when it is given an array on a GPU.

SPDX-License-Identifier: MIT OR Unlicense
"""
