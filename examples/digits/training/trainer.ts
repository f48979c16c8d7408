/**
 * Stochastic gradient descent on cross-entropy, by backpropagation, in batches
 * of augmented samples. The rate of learning falls along a half cosine.
 */
import {
  activations,
  byLayer,
  forward,
  LAYERS,
  PARAMETER_LENGTH,
  predict,
  softmax,
} from "../network.ts";
import { Adam } from "./adam.ts";
import { augment } from "./augment.ts";
import type { Sample } from "./dataset.ts";
import type { Random } from "./random.ts";

const BATCH_SIZE = 32;
const HIGHEST_RATE = 0.002;

export interface TrainingOptions {
  /** How often every sample is seen. */
  readonly epochs: number;
  readonly random: Random;
  /** Called after each epoch with the mean loss over it. */
  readonly onEpoch: (epoch: number, loss: number) => void;
}

/** Trains a network from scratch; the same seed gives the same parameters. */
export function train(samples: readonly Sample[], options: TrainingOptions): Float32Array {
  const { epochs, random, onEpoch } = options;
  const parameters = initialParameters(random);
  const adam = new Adam(PARAMETER_LENGTH);
  const order = [...samples];
  for (let epoch = 0; epoch < epochs; epoch++) {
    random.shuffle(order);
    let loss = 0;
    for (let start = 0; start < order.length; start += BATCH_SIZE) {
      const batch = order.slice(start, start + BATCH_SIZE);
      const done = (epoch + start / order.length) / epochs;
      const slope = gradientOf(parameters, batch, random);
      adam.step(parameters, slope.gradient, (HIGHEST_RATE * (1 + Math.cos(Math.PI * done))) / 2);
      loss += slope.loss;
    }
    onEpoch(epoch + 1, loss / order.length);
  }
  return parameters;
}

/** The share of samples recognized rightly, from 0 to 1. */
export function accuracy(parameters: Float32Array, samples: readonly Sample[]): number {
  const right = samples.filter(({ digit, pixels }) => predict(parameters, pixels).digit === digit);
  return right.length / samples.length;
}

/** Weights by He et al., "Delving deep into rectifiers", ICCV 2015; biases zero. */
function initialParameters(random: Random): Float32Array {
  const parameters = new Float32Array(PARAMETER_LENGTH);
  for (const [i, view] of byLayer(parameters).entries()) {
    const { fanIn, parameterLength } = LAYERS[i]!;
    const biases = parameterLength / (fanIn + 1);
    for (let j = 0; j < parameterLength - biases; j++) {
      view[j] = random.normal() * Math.sqrt(2 / fanIn);
    }
  }
  return parameters;
}

/** The mean gradient over a batch, and the sum of its losses. */
function gradientOf(parameters: Float32Array, batch: readonly Sample[], random: Random) {
  const gradient = new Float32Array(PARAMETER_LENGTH);
  const parameterViews = byLayer(parameters);
  const gradientViews = byLayer(gradient);
  const outputs = activations();
  const outputGradients = activations();
  const unused = new Float32Array(LAYERS[0]!.inputLength);
  let loss = 0;
  for (const { digit, pixels } of batch) {
    const image = augment(pixels, random);
    forward(parameterViews, image, outputs);
    const probabilities = softmax(outputs.at(-1)!);
    loss -= Math.log(Math.max(probabilities[digit]!, Number.MIN_VALUE));
    probabilities[digit]! -= 1;
    outputGradients.at(-1)!.set(probabilities.map((slope) => slope / batch.length));
    for (let i = LAYERS.length - 1; i >= 0; i--) {
      LAYERS[i]!.backward(parameterViews[i]!, {
        input: outputs[i - 1] ?? image,
        output: outputs[i]!,
        outputGradient: outputGradients[i]!,
        inputGradient: outputGradients[i - 1] ?? unused,
        parameterGradient: gradientViews[i]!,
      });
    }
  }
  return { gradient, loss };
}
