package start

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
)

// Terminals of runners are named by their directory, or the package that the command
// names, and their script.
func TestNamesOfRunners(t *testing.T) {
	for line, want := range map[string]string{
		"npm run dev": "app dev", "npm start": "app start", "npm run": "app run", "npm.cmd run dev": "app dev", "npm -w web run dev": "web dev",
		"npm --prefix=packages/web run dev": "web dev", "npm --workspace @acme/web run build:css": "web build-css", "npm exec -- vite": "app vite",
		"pnpm dev": "app dev", "pnpm --filter web dev": "web dev", "pnpm -r run dev": "app dev", "pnpm -C api dev": "api dev", "pnpm dlx serve": "app serve",
		"yarn": "app yarn", "yarn dev": "app dev", "yarn workspace web dev": "web dev", "bun run dev": "app dev", "bun --watch server.ts": "app server",
		"deno task dev": "app dev", "deno run -A main.ts": "app main", "node --run dev": "app dev", "node --watch server.js": "", "node -e 'a(b)'": "",
		"npx vite --port 3000": "app vite", "npx -y create-vite@latest my-app": "app create-vite", "bunx --bun astro dev": "app astro",
		"make": "app make", "make -j4 -C web dev": "web dev", "make -j 4 PORT=1 dev": "app dev", "just dev": "app dev", "task web:dev -- --port 1": "app web-dev",
		"cargo run": "app run", "cargo run -p server -- --port 1": "server run", "cargo run --bin api": "app api", "cargo +nightly watch -x run": "app watch",
		"go run .": "app run", "go run ./cmd/api -port 1": "app api", "go test ./...": "app test", "go run main.go": "app main",
		"docker compose up": "app up", "docker compose -f dev.yml up -d web": "app web", "docker-compose up": "app up", "docker run -it alpine": "", "docker ps": "",
		"python -m http.server 8000": "app http.server", "python3.12 manage.py runserver": "app runserver", "./manage.py runserver": "app runserver", "python3 -c 'x = 1'": "", "python app.py": "",
		"bin/rails server": "app server", "bundle exec puma": "app puma", "bundle exec rails server": "app server", "php artisan serve": "app serve",
		"mix phx.server": "app phx.server", "iex -S mix phx.server": "app phx.server", "./gradlew :api:bootRun": "app api-bootRun", "gradle clean build": "app build", "mvn -pl api spring-boot:run": "api spring-boot-run",
		"turbo run dev --filter=web": "web dev", "turbo dev": "app dev", "nx serve web": "web serve", "nx run web:serve:production": "web serve-production", "npx nx serve web": "web serve", "nx run-many -t serve": "app serve",
		"uv run pytest": "app pytest", "poetry run flask run": "app run", "dotnet watch run": "app watch",
		"cd web && npm run dev": "web dev", "npm ci && npm run dev 2>&1 | tee log": "app dev", "PORT=1 npm run dev": "app dev", "sh -c 'exec npm run dev'": "app dev", "cd \"$X\" && npm run dev": " dev",
		"npm run $X": "app run", "npm run 'a b;$(c)'": "app a-b-c", "npm run -- --x": "app run", "npm run ../..": "app run", "npm run app": " app",
		"npm run " + strings.Repeat("x", 100): "app " + strings.Repeat("x", 40), "npm run (": "", "htop": "", "sleep 1": "", "bash": "", "vite": "",
	} {
		r := Request{SpawnRequest: localapi.SpawnRequest{Line: line, Cwd: testkit.Abs("/home/me/src/app")}}
		got := nameOf(&r)
		if text := strings.TrimSuffix(got.Where+" "+got.What, " "); text != want {
			t.Errorf("%s: %q, want %q", line, text, want)
		}
	}
}

// The directory's part can be typed without quotes, and neither the home directory nor
// the root has one.
func TestNamesOfDirectories(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	for dir, want := range map[string]string{
		testkit.Abs("/src/my app (2)"): "my-app-2", testkit.Abs("/src/@acme.web_x"): "acme.web_x", testkit.Abs("/src/--help"): "help", testkit.Abs("/src/.hidden"): "hidden",
		testkit.Abs("/src/$(rm)"): "rm", testkit.Abs("/src/Überblick"): "Überblick", testkit.Abs("/src/a\xff\u202eb"): "a-b", testkit.Abs("/"): "", home: "", filepath.Join(home, "app"): "app", testkit.Abs("/src/dev"): "",
	} {
		r := Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"npm", "run", "dev"}, Cwd: dir}}
		if got := nameOf(&r); got != (term.NameParts{Where: want, What: "dev"}) {
			t.Errorf("%q: %+v, want %q", dir, got, want)
		}
	}
	if got := nameOf(&Request{SpawnRequest: localapi.SpawnRequest{Shell: true, Command: []string{"make"}, Cwd: home}}); got.What != "" {
		t.Errorf("a shell: %+v", got)
	}
}
