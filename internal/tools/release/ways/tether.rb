class Tether < Formula
  desc "Lends terminals of this machine to remote agent hosts"
  homepage "{{.Base}}"
  version "{{.Version}}"
  license "MIT"

  on_macos do
    on_arm do
      url "{{.Base}}/{{name "darwin/arm64" ".tar.gz"}}"
      sha256 "{{sum "darwin/arm64" ".tar.gz"}}"
    end
    on_intel do
      url "{{.Base}}/{{name "darwin/amd64" ".tar.gz"}}"
      sha256 "{{sum "darwin/amd64" ".tar.gz"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.Base}}/{{name "linux/arm64" ".tar.gz"}}"
      sha256 "{{sum "linux/arm64" ".tar.gz"}}"
    end
    on_intel do
      url "{{.Base}}/{{name "linux/amd64" ".tar.gz"}}"
      sha256 "{{sum "linux/amd64" ".tar.gz"}}"
    end
  end

  def install
    bin.install "tether", "tether-host"
    man1.install Dir["man/man1/*"]
    doc.install "docs", "LICENSES.txt"
    %w[tether tether-host].each do |program|
      bash_completion.install "completions/#{program}.bash" => program
      zsh_completion.install "completions/_#{program}"
      fish_completion.install "completions/#{program}.fish"
    end
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tether version")
  end
end
