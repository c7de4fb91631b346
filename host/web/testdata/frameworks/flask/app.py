from flask import Flask, render_template

app = Flask(__name__)


@app.get("/")
def page():
    return render_template("page.html")


@app.get("/broken")
def broken():
    return [][0]
