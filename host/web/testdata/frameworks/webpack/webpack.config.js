module.exports = {
  mode: "development",
  entry: "./wds/index.js",
  experiments: { css: true },
  module: { rules: [{ test: /\.css$/, type: "css/auto" }, { test: /\.svg$/, type: "asset/resource" }] },
  devServer: { static: "./wds/static" },
}
