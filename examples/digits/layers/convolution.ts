/** A convolutional layer. */
import type { Gradients, Layer } from "./layer.ts";

export interface ConvolutionShape {
  /** Width and height of an input plane in pixels. */
  readonly size: number;
  /** Planes in. */
  readonly channels: number;
  /** Planes out, one per learned kernel. */
  readonly kernels: number;
  /** Width and height of a kernel in pixels. */
  readonly kernelSize: number;
}

/**
 * A convolution without padding, stride 1. Parameters: the kernels (by output
 * plane, input plane, row, column), then one bias per output plane.
 *
 * All three loops run along image rows for one kernel weight at a time: that
 * is the order in which memory lies, and it keeps the innermost loop free of
 * branches.
 */
export function convolution(shape: ConvolutionShape): Layer {
  const { size, channels, kernels, kernelSize } = shape;
  const outputSize = size - kernelSize + 1;
  const biasAt = kernels * channels * kernelSize * kernelSize;

  /** Visits every kernel weight with the offsets of the planes it connects. */
  function eachWeight(visit: (weight: number, inputAt: number, outputAt: number) => void): void {
    let weight = 0;
    for (let kernel = 0; kernel < kernels; kernel++) {
      for (let channel = 0; channel < channels; channel++) {
        for (let row = 0; row < kernelSize; row++) {
          for (let column = 0; column < kernelSize; column++) {
            const inputAt = (channel * size + row) * size + column;
            visit(weight++, inputAt, kernel * outputSize * outputSize);
          }
        }
      }
    }
  }

  function forward(parameters: Float32Array, input: Float32Array, output: Float32Array): void {
    for (let kernel = 0; kernel < kernels; kernel++) {
      const planeAt = kernel * outputSize * outputSize;
      output.fill(parameters[biasAt + kernel]!, planeAt, planeAt + outputSize * outputSize);
    }
    eachWeight((weight, inputAt, outputAt) => {
      const value = parameters[weight]!;
      for (let row = 0; row < outputSize; row++) {
        const from = inputAt + row * size;
        const to = outputAt + row * outputSize;
        for (let x = 0; x < outputSize; x++) {
          output[to + x]! += value * input[from + x]!;
        }
      }
    });
  }

  function backward(parameters: Float32Array, gradients: Gradients): void {
    const { input, outputGradient, inputGradient, parameterGradient } = gradients;
    inputGradient.fill(0);
    eachWeight((weight, inputAt, outputAt) => {
      const value = parameters[weight]!;
      let sum = 0;
      for (let row = 0; row < outputSize; row++) {
        const from = inputAt + row * size;
        const to = outputAt + row * outputSize;
        for (let x = 0; x < outputSize; x++) {
          const gradient = outputGradient[to + x]!;
          sum += gradient * input[from + x]!;
          inputGradient[from + x]! += gradient * value;
        }
      }
      parameterGradient[weight]! += sum;
    });
    for (let kernel = 0; kernel < kernels; kernel++) {
      const planeAt = kernel * outputSize * outputSize;
      for (let i = planeAt; i < planeAt + outputSize * outputSize; i++) {
        parameterGradient[biasAt + kernel]! += outputGradient[i]!;
      }
    }
  }

  return {
    inputLength: channels * size * size,
    outputLength: kernels * outputSize * outputSize,
    parameterLength: biasAt + kernels,
    fanIn: channels * kernelSize * kernelSize,
    forward,
    backward,
  };
}
