# Python, Ruby, PHP, Terraform.
project py
file app/calc.py <<'X'
def half(n: int) -> int:
    return n / 2


def name() -> str:
    return 3


def boom(n):
    raise ValueError(f"bad value {n}")
X
file app/__init__.py </dev/null
file main.py <<'X'
import json

from app.calc import boom


def run():
    print("error: nothing yet")
    try:
        json.loads("{")
    except ValueError as e:
        boom(4)


run()
X
file syntax.py <<'X'
def f(:
    return 1
X
file test_calc.py <<'X'
import pytest

from app.calc import half


def test_half():
    assert half(4) == 2


def test_wrong():
    assert half(4) == 3


def test_raises():
    raise KeyError("nothing")


@pytest.fixture
def broken():
    raise RuntimeError("no fixture")


def test_fixture(broken):
    pass
X
file test_ok.py <<'X'
from app.calc import half


def test_half():
    print("test_ok.py:3: error: only text")
    assert half(4) == 2
X
file ok.py <<'X'
import logging
logging.basicConfig(level=logging.INFO)
logging.error("worker.py:12 could not connect, trying again")
print("done, 0 errors")
X
run python-traceback python3 'python3 main.py'
run python-syntax python3 'python3 syntax.py'
run python-ok python3 'python3 ok.py'
run pytest-fails pytest-3 'pytest-3 -p no:cacheprovider test_calc.py'
run pytest-short pytest-3 'pytest-3 -p no:cacheprovider --tb=short test_calc.py'
run pytest-no pytest-3 'pytest-3 -p no:cacheprovider -q --tb=no test_calc.py'
run pytest-line pytest-3 'pytest-3 -p no:cacheprovider -q --tb=line test_calc.py'
run pytest-ok pytest-3 'pytest-3 -p no:cacheprovider -v -s test_ok.py'
run pytest-collect pytest-3 'cp test_ok.py test_import.py; sed -i s/app.calc/app.nowhere/ test_import.py; pytest-3 -p no:cacheprovider test_import.py'
run mypy-bad mypy 'mypy --cache-dir=/dev/null app main.py'
run mypy-pretty mypy 'mypy --cache-dir=/dev/null --pretty --show-column-numbers app main.py'
run mypy-ok mypy 'mypy --cache-dir=/dev/null ok.py'
run flake8-bad flake8 'flake8 --isolated .'
run flake8-ok flake8 'flake8 --isolated --ignore E302,E305 ok.py'
run pylint-bad pylint 'pylint --disable=missing-docstring app main.py'
run unittest-fails python3 'cat >test_u.py <<Y
import unittest


class T(unittest.TestCase):
    def test_a(self):
        self.assertEqual(1, 2)


unittest.main()
Y
python3 test_u.py'
project rb
file app.rb <<'X'
def half(n)
  n / 0
end

def run
  half(4)
end

run
X
file bad.rb <<'X'
def f(
  puts "x"
end
X
file ok.rb <<'X'
puts "app.rb:3: all good"
warn "warning is only a word"
X
file warns.rb <<'X'
def f(a)
  b = 3
end
f(1)
X
file spec/half_spec.rb <<'X'
RSpec.describe "half" do
  it "halves" do
    expect(4 / 2).to eq 2
  end

  it "is wrong" do
    expect(4 / 2).to eq 3
  end

  it "raises" do
    nil.upcase
  end
end
X
file spec/ok_spec.rb <<'X'
RSpec.describe "ok" do
  it("works") { expect(1).to eq 1 }
  it("waits")
end
X
run ruby-raises ruby 'ruby app.rb'
run ruby-syntax ruby 'ruby -c bad.rb'
run ruby-warns ruby 'ruby -w warns.rb'
run ruby-ok ruby 'ruby ok.rb'
run rspec-fails rspec 'rspec spec/half_spec.rb'
run rspec-ok rspec 'rspec -fd spec/ok_spec.rb'
project php
file bad.php <<'X'
<?php
function f() {
    return 1
}
X
file throws.php <<'X'
<?php
function half($n) {
    throw new RuntimeException("bad $n");
}
echo $nothing;
half(3);
X
file ok.php <<'X'
<?php
echo "Fatal errors: none in ok.php on line 3\n";
X
file HalfTest.php <<'X'
<?php
use PHPUnit\Framework\TestCase;

class HalfTest extends TestCase {
    public function testHalf(): void {
        $this->assertSame(2, 4 / 2);
    }
    public function testWrong(): void {
        $this->assertSame(3, 4 / 2);
    }
    public function testThrows(): void {
        throw new LogicException("no");
    }
}
X
file OkTest.php <<'X'
<?php
use PHPUnit\Framework\TestCase;
class OkTest extends TestCase {
    public function testHalf(): void { $this->assertSame(2, 4 / 2); }
}
X
run php-syntax php 'php -d display_errors=stderr -d html_errors=0 bad.php'
run php-lint php 'php -l bad.php'
run php-throws php 'php -d display_errors=1 -d log_errors=0 -d html_errors=0 throws.php'
run php-ok php 'php ok.php'
run phpunit-fails phpunit 'phpunit --colors=auto HalfTest.php'
run phpunit-ok phpunit 'phpunit --colors=auto OkTest.php'
project tf
file main.tf <<'X'
variable "name" {
  type = strin
}

output "x" {
  value = var.nothing
}
X
run terraform-type terraform 'terraform validate'
sed -i 's/strin$/string/' main.tf
run terraform-ref terraform 'terraform validate'
echo 'resource "x" {' >>main.tf
run terraform-syntax terraform 'terraform validate'
file main.tf <<'X'
output "x" { value = 3 }
X
run terraform-ok terraform 'terraform validate && terraform plan'

# docker build wants a builder that runs (docker buildx create --use), which may be a buildkitd alone (--driver remote), and a busybox without shared
# libraries: $BUSYBOX. Nothing is fetched.
project docker
cp "${BUSYBOX:-/bin/busybox}" busybox 2>/dev/null || : >busybox
build() { # NAME: records a build of the Dockerfile that is there
	run "$1" docker 'docker build --no-cache --output type=cacheonly .'
}
file Dockerfile <<'X'
FROM scratch AS base
COPY busybox /bin/sh
WORKDIR /app

FROM base
RUN echo "1 error: none" && \
    exit 3
X
build docker-run-fails
file Dockerfile <<'X'
FROM scratch
COPY busybox /bin/sh
COPY package.json /app/
X
build docker-copy-missing
file Dockerfile <<'X'
FROM scratch
COPPY busybox /bin/sh
X
build docker-syntax
file Dockerfile <<'X'
FROM scratch as base
COPY busybox /bin/sh
ENV TOKEN abc
RUN echo "warning: nothing"
CMD echo hi
X
build docker-warns
file Dockerfile <<'X'
FROM scratch
COPY busybox /bin/sh
RUN echo "0 errors, 0 warnings"
CMD ["/bin/sh"]
X
build docker-ok
file Dockerfile <<'X'
FROM scratch
COPY busybox /bin/sh
COPY build.sh /app/
RUN sh /app/build.sh
X
file build.sh <<'X'
echo "cc -c main.c"
echo "main.c:3:5: error: expected ';' before 'return'" >&2
echo "src/cart.ts(17,9): error TS2322: Type 'string' is not assignable to type 'number'."
exit 1
X
build docker-compiles
file deploy/api.Dockerfile <<'X'
FROM scratch
RUN ["/none"]
X
run docker-other-file docker 'docker build --no-cache --output type=cacheonly -f deploy/api.Dockerfile .'
