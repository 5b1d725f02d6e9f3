"""A GPU made of the memory of the CPU: fits run on it, and what would wait for a GPU is counted.

Tensors on it say cuda:0 and hold real data. An operator that mixes devices raises an error, as it
does in CUDA. This module has to be imported before torch, and needs g++.
"""

# ruff: noqa: E402
import ctypes
import importlib.util
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from .real_gpu import line_of_skdice

# What makes torch believe that there is a GPU whose streams are always done.
SOURCE = """
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
using namespace c10;
struct Guard final : impl::DeviceGuardImplInterface {
  Device gpu() const { return Device(DeviceType::CUDA, 0); }
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return gpu(); }
  Device getDevice() const override { return gpu(); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device d) const override { return Stream(Stream::DEFAULT, d); }
  Stream getNewStream(Device d, int) const override { return getStream(d); }
  Stream exchangeStream(Stream s) const override { return s; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const Stream&, const DeviceIndex, const EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
};
namespace c10 { C10_REGISTER_GUARD_IMPL(CUDA, Guard) }
namespace at {
struct Hooks final : CUDAHooksInterface {
  explicit Hooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  int getNumGPUs() const override { return 1; }
};
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", Hooks)
}
"""


def _load() -> None:
    """Build the library and load it, before torch looks for GPUs."""
    torch_path = Path(importlib.util.find_spec("torch").origin).parent
    include, lib = torch_path / "include", torch_path / "lib"
    with tempfile.TemporaryDirectory() as directory:
        code, library = Path(directory, "gpu.cpp"), Path(directory, "gpu.so")
        code.write_text(SOURCE, encoding="utf-8")
        options = ["-shared", "-fPIC", "-std=c++20", f"-I{include}", f"-L{lib}"]
        links = ["-lc10", "-ltorch_cpu"]
        subprocess.run(["g++", *options, str(code), "-o", str(library), *links], check=True)
        for path in (lib / "libc10.so", lib / "libtorch_cpu.so", library):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


_load()

import torch
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

GPU, CPU = torch.device("cuda:0"), torch.device("cpu")
# These return what the host has to know: a number, or how large a tensor is.
ANSWERS = {
    "_local_scalar_dense", "_unique2", "equal", "is_nonzero", "isin", "masked_select", "nonzero",
    "repeat_interleave", "unique_consecutive", "unique_dim",
}  # fmt: skip
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
COPIES = {"_to_copy", "copy_"}
waits: Counter[str] = Counter()


class OnGpu(torch.Tensor):
    """A tensor that says that it is on the GPU; ``held`` is where it is."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held):
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(
            cls, held.size(), dtype=held.dtype, device=GPU, **layout
        )

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copy = OnGpu(self.held.detach().clone())
            is_parameter = isinstance(self, torch.nn.Parameter)
            copy = torch.nn.Parameter(copy, False) if is_parameter else copy
            memo[id(self)] = copy.requires_grad_(self.requires_grad)
        return memo[id(self)]


class _Everywhere(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    """Run an operator on the CPU, and note if a GPU would be waited for."""
    name = func._schema.name.removeprefix("aten::")
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    on_gpu = [x for x in tensors if isinstance(x, OnGpu)]
    asked = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    is_gpu = isinstance(args[0], OnGpu) if name == "copy_" else bool(on_gpu)
    if asked is not None:
        is_gpu = asked.type == "cuda"
    if on_gpu and name not in COPIES:
        _check_one_device(name, args, [x for x in tensors if not isinstance(x, OnGpu)])
    if (on_gpu or is_gpu) and (reason := _why_waited_for(name, args, kwargs, is_gpu)):
        waits[f"{reason} at {line_of_skdice()}"] += 1
    held, options = tree_map_only(OnGpu, lambda x: x.held, (args, kwargs))
    if asked is not None:
        options["device"] = CPU
    found = func(*held, **options)
    if not is_gpu:
        return found
    if found is held[0] and name == "_to_copy":
        found = found.clone()
    found = tree_map_only(torch.Tensor, lambda x: x if isinstance(x, OnGpu) else OnGpu(x), found)
    return return_and_correct_aliasing(func, args, kwargs, found) if on_gpu else found


def _check_one_device(name, args, on_cpu):
    if name in INDEXING and isinstance(args[0], OnGpu):
        return
    if any(x.dim() for x in on_cpu):
        raise RuntimeError(f"Expected all tensors of {name} to be on cuda:0, at {line_of_skdice()}")


def _why_waited_for(name, args, kwargs, is_gpu):
    """Return what a GPU would be waited for by an operator, or None."""
    if name in ANSWERS:
        return name
    if name in INDEXING:
        # A number at the places of a mask becomes masked_fill.
        is_fill = "put" in name and args[2].dim() == 0 and not isinstance(args[2], OnGpu)
        indices = [index for index in args[1] if index is not None]
        if any(index.dtype == torch.bool for index in indices):
            return None if is_fill else f"{name} of a mask"
        given = [*indices, *args[2:3]] if "put" in name else indices
        return None if all(isinstance(x, OnGpu) for x in given) else f"{name} of a CPU tensor"
    if name not in COPIES:
        return None
    source = args[0] if name == "_to_copy" else args[1]
    if isinstance(source, OnGpu) == is_gpu:
        return None
    waits_not = name == "_to_copy" and kwargs.get("non_blocking")
    is_ready = waits_not and (not is_gpu or getattr(source, "is_pinned_", False))
    return None if is_ready else f"a copy to the {'GPU' if is_gpu else 'CPU'}"


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, scale=None, **options):
    """Compute what the fused kernel does, which takes no tensor of another class."""
    logits = query @ key.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
    if attn_mask is not None:
        is_mask = attn_mask.dtype == torch.bool
        logits = logits.masked_fill(~attn_mask, -torch.inf) if is_mask else logits + attn_mask
    weights = torch.nn.functional.dropout(logits.softmax(-1), dropout_p, training=True)
    return weights.to(value.dtype) @ value


def _pinned(tensor):
    copy = tensor.clone()
    copy.is_pinned_ = True
    return copy


@contextmanager
def gpu():
    """Let torch say inside the block that there is one GPU."""
    of_cuda = {
        "_lazy_init": lambda: None, "current_device": lambda: 0,
        "default_generators": (torch.default_generator,), "device_count": lambda: 1,
        "get_rng_state": lambda device=0: torch.get_rng_state(), "is_available": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False, "is_initialized": lambda: True,
        "set_rng_state": lambda state, device=0: torch.set_rng_state(state),
        "synchronize": lambda device=None: waits.update([f"synchronize at {line_of_skdice()}"]),
    }  # fmt: skip
    patches = [
        *(mock.patch.object(torch.cuda, name, value) for name, value in of_cuda.items()),
        mock.patch.object(torch.Tensor, "pin_memory", _pinned),
        mock.patch.object(torch, "inference_mode", torch.no_grad),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _attention),
        mock.patch.object(optimizer, "_foreach_supported_types", [torch.Tensor, OnGpu]),
    ]
    is_capturing = mock.Mock(return_value=False)
    patches.append(
        mock.patch.object(torch._C, "_cuda_isCurrentStreamCapturing", is_capturing, create=True)
    )
    before = torch.__future__.get_swap_module_params_on_conversion()
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        # Only so do parameters stay the same objects on their way to the GPU, as on a real one.
        torch.__future__.set_swap_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_swap_module_params_on_conversion, before)
        stack.enter_context(_Everywhere())
        yield
