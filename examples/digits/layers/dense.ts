import type { Gradients, Layer } from "./layer.ts";

/**
 * Every output is a weighted sum of all inputs. Parameters: the weights (by
 * output, then input), then one bias per output.
 */
export function dense(inputLength: number, outputLength: number): Layer {
  const biasAt = inputLength * outputLength;

  function forward(parameters: Float32Array, input: Float32Array, output: Float32Array): void {
    for (let to = 0; to < outputLength; to++) {
      let sum = parameters[biasAt + to]!;
      for (let from = 0; from < inputLength; from++) {
        sum += parameters[to * inputLength + from]! * input[from]!;
      }
      output[to] = sum;
    }
  }

  function backward(parameters: Float32Array, gradients: Gradients): void {
    const { input, outputGradient, inputGradient, parameterGradient } = gradients;
    inputGradient.fill(0);
    for (let to = 0; to < outputLength; to++) {
      const gradient = outputGradient[to]!;
      parameterGradient[biasAt + to]! += gradient;
      for (let from = 0; from < inputLength; from++) {
        const weight = to * inputLength + from;
        parameterGradient[weight]! += gradient * input[from]!;
        inputGradient[from]! += gradient * parameters[weight]!;
      }
    }
  }

  const parameterLength = biasAt + outputLength;
  return { inputLength, outputLength, parameterLength, fanIn: inputLength, forward, backward };
}
