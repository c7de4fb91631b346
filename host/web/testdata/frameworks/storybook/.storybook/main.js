export default {
  stories: ["../src/*.stories.js"],
  framework: "@storybook/html-vite",
  staticDirs: ["../public"],
  core: { disableTelemetry: true },
  // Otherwise the page looks for the server at its own port, not at the preview's.
  viteFinal: config => { delete config.server.hmr.port; return config },
}
