/** What one step of training a layer reads and writes. */
export interface Gradients {
  readonly input: Float32Array;
  readonly output: Float32Array;
  readonly outputGradient: Float32Array;
  /** Written by the layer. */
  readonly inputGradient: Float32Array;
  /** Added to by the layer, so that a batch sums up. */
  readonly parameterGradient: Float32Array;
}

/**
 * One step of a network. Layers hold no numbers of their own: parameters and
 * activations are flat arrays that belong to whoever runs the network, planes
 * one after another, rows from the top, pixels from the left.
 */
export interface Layer {
  readonly inputLength: number;
  readonly outputLength: number;
  readonly parameterLength: number;
  /** How many values each output is summed from; 0 when nothing is learned. */
  readonly fanIn: number;
  forward(parameters: Float32Array, input: Float32Array, output: Float32Array): void;
  backward(parameters: Float32Array, gradients: Gradients): void;
}
