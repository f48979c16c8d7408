/** Never done with loading. */
await new Promise(() => {});

export default undefined;
