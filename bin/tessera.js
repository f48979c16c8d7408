#!/usr/bin/env node
// Checks the version of Node before it imports anything: an older Node could
// not parse the program.
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 24) {
  console.error(
    `tessera needs Node 24 or newer; this is ${process.versions.node}. ` +
      "In a project that has it installed, `npx tessera` runs it on the Node that came with it.",
  );
  process.exitCode = 1;
} else {
  const args = process.argv.slice(2);
  if (args[0] === "serve" || args[0] === "start") {
    const { setUpV8 } = await import("./v8-settings.js");
    setUpV8();
  }
  const { main } = await import("../dist/main.js");
  process.exitCode = await main(args);
}
