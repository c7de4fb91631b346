{
  description = "tether: {{.Summary}}";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
  outputs = { self, nixpkgs }:
    let
      archives = {
        x86_64-linux = { name = "{{name "linux/amd64" ".tar.gz"}}"; sha256 = "{{sum "linux/amd64" ".tar.gz"}}"; };
        aarch64-linux = { name = "{{name "linux/arm64" ".tar.gz"}}"; sha256 = "{{sum "linux/arm64" ".tar.gz"}}"; };
        x86_64-darwin = { name = "{{name "darwin/amd64" ".tar.gz"}}"; sha256 = "{{sum "darwin/amd64" ".tar.gz"}}"; };
        aarch64-darwin = { name = "{{name "darwin/arm64" ".tar.gz"}}"; sha256 = "{{sum "darwin/arm64" ".tar.gz"}}"; };
      };
      build = system: archive:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          default = pkgs.stdenvNoCC.mkDerivation {
            pname = "tether";
            version = "{{.Version}}";
            src = pkgs.fetchurl { url = "{{.Base}}/${archive.name}"; inherit (archive) sha256; };
            nativeBuildInputs = [ pkgs.installShellFiles ];
            dontFixup = true;
            installPhase = ''
              install -Dm755 -t $out/bin tether tether-host
              installManPage man/man1/*
              for program in tether tether-host; do
                installShellCompletion completions/$program.bash completions/_$program completions/$program.fish
              done
              mkdir -p $out/share/doc/tether
              cp -r docs LICENSES.txt $out/share/doc/tether
            '';
            meta = { license = pkgs.lib.licenses.mit; mainProgram = "tether"; };
          };
        };
    in { packages = builtins.mapAttrs build archives; };
}
