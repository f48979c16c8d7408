/** Builds the console into dist/console/app: hashed names, one chunk for each page. */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/console/",
  plugins: [react()],
  build: {
    outDir: fileURLToPath(new URL("../../../dist/console/app/", import.meta.url)),
    emptyOutDir: true,
    // Everything is a file of its own: the policy of the page allows no inline anything.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
});
