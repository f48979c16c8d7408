/** `npm start`: serves the summarizer example, and says how to serve the other one. */
process.stdout.write(
  "The digits example, in another terminal:  npx tessera serve examples/digits/service.ts --port 3001\n\n",
);
process.argv = [
  ...process.argv.slice(0, 2),
  "serve",
  "examples/summarizer/service.ts",
  ...process.argv.slice(2),
];
await import(new URL("../bin/tessera.js", import.meta.url).href);
