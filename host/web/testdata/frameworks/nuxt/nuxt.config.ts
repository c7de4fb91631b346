export default defineNuxtConfig({ css: ["~/style.css"], telemetry: false })
