/**
 * The version of uv that locks and installs packages, and its wheel in a package index for
 * each platform. A wheel of another digest is not run.
 */

export const UV_VERSION = "0.13.9";

interface UvWheel {
  readonly name: string;
  readonly sha256: string;
}

const wheel = (tags: string, sha256: string): UvWheel => ({
  name: `uv-${UV_VERSION}-py3-none-${tags}.whl`,
  sha256,
});

const LINUX_ARM64 = wheel(
  "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
  "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
);

/** By platform, as artifacts name it. */
export const UV_WHEELS: { readonly [platform: string]: UvWheel } = {
  "linux-x64-glibc": wheel(
    "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
  ),
  "linux-x64-musl": wheel(
    "musllinux_1_1_x86_64",
    "2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25",
  ),
  "linux-arm64-glibc": LINUX_ARM64,
  "linux-arm64-musl": LINUX_ARM64,
  "darwin-x64": wheel(
    "macosx_10_12_x86_64",
    "c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5",
  ),
  "darwin-arm64": wheel(
    "macosx_11_0_arm64",
    "66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63",
  ),
};
