const FIRST_DECAY = 0.9;
const SECOND_DECAY = 0.999;
const EPSILON = 1e-8;

/** Adam: Kingma, Ba, "A method for stochastic optimization", ICLR 2015. */
export class Adam {
  readonly #mean: Float32Array;
  readonly #variance: Float32Array;
  #steps = 0;

  constructor(length: number) {
    this.#mean = new Float32Array(length);
    this.#variance = new Float32Array(length);
  }

  /** Moves the parameters one step down the gradient, in place. */
  step(parameters: Float32Array, gradient: Float32Array, rate: number): void {
    this.#steps++;
    const meanScale = 1 / (1 - FIRST_DECAY ** this.#steps);
    const varianceScale = 1 / (1 - SECOND_DECAY ** this.#steps);
    for (let i = 0; i < parameters.length; i++) {
      const slope = gradient[i]!;
      const mean = FIRST_DECAY * this.#mean[i]! + (1 - FIRST_DECAY) * slope;
      const variance = SECOND_DECAY * this.#variance[i]! + (1 - SECOND_DECAY) * slope * slope;
      this.#mean[i] = mean;
      this.#variance[i] = variance;
      parameters[i]! -= (rate * mean * meanScale) / (Math.sqrt(variance * varianceScale) + EPSILON);
    }
  }
}
