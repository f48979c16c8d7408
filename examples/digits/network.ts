/**
 * The network: two convolutions, each followed by pooling, and two dense
 * layers, after LeNet-5 (LeCun, Bottou, Bengio, Haffner: "Gradient-based
 * learning applied to document recognition", Proceedings of the IEEE 86, 1998).
 * It sees a digit as 28×28 values from 0 (paper) to 1 (ink), placed as in
 * MNIST: see `normalize.ts`.
 */
import { maxPool, rectifier } from "./layers/activation.ts";
import { convolution } from "./layers/convolution.ts";
import { dense } from "./layers/dense.ts";
import type { Layer } from "./layers/layer.ts";

/** Width and height of what the network sees, in pixels. */
export const SIDE = 28;

export const LAYERS: readonly Layer[] = [
  convolution({ size: SIDE, channels: 1, kernels: 8, kernelSize: 5 }),
  maxPool(24, 8),
  convolution({ size: 12, channels: 8, kernels: 16, kernelSize: 5 }),
  maxPool(8, 16),
  dense(256, 64),
  rectifier(64),
  dense(64, 10),
];

/** How many numbers the network learns. */
export const PARAMETER_LENGTH = LAYERS.reduce((sum, layer) => sum + layer.parameterLength, 0);

/** What the network says of one image. */
export interface Prediction {
  readonly digit: number;
  /** The probability it gives to that digit, from 0.1 to 1. */
  readonly confidence: number;
}

/** Cuts the flat array of parameters (or of their gradients) into one view per layer. */
export function byLayer(parameters: Float32Array): Float32Array[] {
  let end = 0;
  return LAYERS.map(({ parameterLength }) => {
    end += parameterLength;
    return parameters.subarray(end - parameterLength, end);
  });
}

/** One array per layer for what it puts out. */
export function activations(): Float32Array[] {
  return LAYERS.map((layer) => new Float32Array(layer.outputLength));
}

/** Runs the layers one after another; `outputs` is written. */
export function forward(
  parameters: readonly Float32Array[],
  pixels: Float32Array,
  outputs: readonly Float32Array[],
): void {
  let input = pixels;
  for (const [i, layer] of LAYERS.entries()) {
    layer.forward(parameters[i]!, input, outputs[i]!);
    input = outputs[i]!;
  }
}

/** Turns scores into probabilities that sum to 1. */
export function softmax(scores: Float32Array): Float32Array {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * Recognizes one digit.
 *
 * @param parameters All parameters of the network, as `readWeights` gives them.
 * @param pixels 28×28 values from 0 (paper) to 1 (ink).
 */
export function predict(parameters: Float32Array, pixels: Float32Array): Prediction {
  const outputs = activations();
  forward(byLayer(parameters), pixels, outputs);
  const probabilities = softmax(outputs[outputs.length - 1]!);
  const confidence = Math.max(...probabilities);
  return { digit: probabilities.indexOf(confidence), confidence };
}
