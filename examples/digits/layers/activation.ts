/** Layers without parameters: max pooling and rectifiers. */
import type { Gradients, Layer } from "./layer.ts";

/**
 * The largest of each 2×2 block of pixels, and zero where that is negative:
 * max pooling and a rectifier in one pass. Learns nothing.
 *
 * @param size Width and height of an input plane in pixels; even.
 */
export function maxPool(size: number, channels: number): Layer {
  const half = size / 2;

  function forward(_: Float32Array, input: Float32Array, output: Float32Array): void {
    for (let i = 0; i < output.length; i++) {
      const at = corner(i);
      const upper = Math.max(input[at]!, input[at + 1]!);
      const lower = Math.max(input[at + size]!, input[at + size + 1]!);
      output[i] = Math.max(0, upper, lower);
    }
  }

  /** The gradient goes to the pixel that was taken, the first one of equals. */
  function backward(_: Float32Array, gradients: Gradients): void {
    const { input, output, outputGradient, inputGradient } = gradients;
    inputGradient.fill(0);
    for (let i = 0; i < output.length; i++) {
      const taken = output[i]!;
      if (taken > 0) {
        const at = corner(i);
        const upper = input[at] === taken ? at : at + 1;
        const lower = input[at + size] === taken ? at + size : at + size + 1;
        inputGradient[input[upper] === taken ? upper : lower] = outputGradient[i]!;
      }
    }
  }

  /** Where the block of an output begins: input rows are twice as long. */
  function corner(outputIndex: number): number {
    return 2 * outputIndex + size * Math.floor(outputIndex / half);
  }

  const outputLength = channels * half * half;
  return {
    inputLength: outputLength * 4,
    outputLength,
    parameterLength: 0,
    fanIn: 0,
    forward,
    backward,
  };
}

/** Zero where the input is negative. Learns nothing. */
export function rectifier(length: number): Layer {
  return {
    inputLength: length,
    outputLength: length,
    parameterLength: 0,
    fanIn: 0,
    forward(_, input, output) {
      for (let i = 0; i < length; i++) {
        output[i] = Math.max(0, input[i]!);
      }
    },
    backward(_, { output, outputGradient, inputGradient }) {
      for (let i = 0; i < length; i++) {
        inputGradient[i] = output[i]! > 0 ? outputGradient[i]! : 0;
      }
    },
  };
}
